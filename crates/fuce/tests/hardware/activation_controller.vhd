-- The thread activation controller as hardware: activation control memory, ready queue, dispatch.
--
-- An independent model, written from the description in the book ("The processor"), against which the Rust model is
-- checked. One rising edge is one cycle: `submit`, `idle` and `preload` are what units and devices did in the cycle,
-- `dispatch` and `completion` are what the controller did in it.

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

package controller_types is
    subtype word is unsigned(31 downto 0);
    subtype thread_number is natural range 0 to 8191;

    type operation is (op_continue, op_continue_data, op_self, op_lock, op_unlock, op_create, op_delete, op_install,
                       op_set_count, op_rearm, op_signal);

    type request is record
        valid      : std_logic;
        op         : operation;
        from_thread : std_logic;            -- else from a device
        thread     : thread_number;
        mode       : unsigned(1 downto 0);  -- 1 user, 2 interface, 3 kernel
        a, b, c    : word;                  -- target or frame; slot, words, code or count; data or mode and fan-in
    end record;

    type request_array is array (natural range <>) of request;

    type dispatched is record
        valid  : std_logic;
        to_unit : natural;
        thread : thread_number;
        code   : unsigned(18 downto 0);
        mode   : unsigned(1 downto 0);
        frame  : word;
        words  : natural;
    end record;

    type outcome is (done, answer, write_word, deferred, fault);

    type completed is record
        valid  : std_logic;
        from_port : natural;
        result : outcome;
        x, y   : word;                      -- answer; address and data; cause and value
    end record;
end package;

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.controller_types.all;

entity activation_controller is
    generic (pages, queue_length, ports, service_cycles, text_length : positive);
    port (
        clock      : in  std_logic;
        submit     : in  request_array(0 to ports - 1);
        idle       : in  unsigned(31 downto 0);
        preload    : in  unsigned(31 downto 0);
        dispatch   : out dispatched;
        completion : out completed
    );
end entity;

architecture behaviour of activation_controller is
    -- An entry's 40 bits: spilled, ready, lock, mode, fan-in, counter, code.
    subtype entry is unsigned(39 downto 0);
    subtype code_bits is natural range 18 downto 0;
    subtype count_bits is natural range 26 downto 19;
    subtype fan_in_bits is natural range 34 downto 27;
    subtype mode_bits is natural range 36 downto 35;
    constant lock_bit    : natural := 37;
    constant ready_bit   : natural := 38;
    constant spilled_bit : natural := 39;

    constant empty_entry : entry := (others => '0');
    constant user_mode   : unsigned(1 downto 0) := "01";
    constant kernel_mode : unsigned(1 downto 0) := "11";

    type page_level is (free_page, user_page, system_page);
    type entry_memory is array (0 to pages * 8 - 1) of entry;
    type level_memory is array (0 to pages - 1) of page_level;
    type word_memory is array (0 to pages - 1) of word;
    type thread_memory is array (0 to queue_length - 1) of thread_number;
    type service_kind is (nothing, a_port, a_refill);

    -- What the loader leaves: page 0 with the boot thread, ready.
    function booted return entry_memory is
        variable entries : entry_memory := (others => empty_entry);
    begin
        entries(0)(mode_bits) := kernel_mode;
        entries(0)(fan_in_bits) := to_unsigned(1, 8);
        entries(0)(ready_bit) := '1';
        return entries;
    end function;

    function booted_levels return level_memory is
        variable levels : level_memory := (others => free_page);
    begin
        levels(0) := system_page;
        return levels;
    end function;
begin
    cycle : process (clock)
        variable entries : entry_memory := booted;
        variable levels  : level_memory := booted_levels;
        variable frames  : word_memory := (others => (others => '0'));
        variable lengths : word_memory := (others => (others => '0'));

        variable queue   : thread_memory := (others => 0);
        variable head    : natural := 0;
        variable queued  : natural := 1;
        variable spilled : natural := 0;
        variable refill_page : natural := 0;

        variable latches   : request_array(0 to ports - 1);
        variable last_port : natural := ports - 1;
        variable serving   : service_kind := nothing;
        variable remaining : natural := 0;
        variable port_served : natural := 0;
        variable current   : request;

        variable result : completed;
        variable out_dispatch : dispatched;
        variable target_thread : thread_number;
        variable candidates : unsigned(31 downto 0);
        variable chosen : natural;
        variable found  : boolean;

        procedure refuse(cause : natural; value : word) is
        begin
            result.result := fault;
            result.x := to_unsigned(cause, 32);
            result.y := value;
        end procedure;

        procedure enqueue(thread : thread_number) is
        begin
            queue((head + queued) mod queue_length) := thread;
            queued := queued + 1;
        end procedure;

        procedure make_ready(thread : thread_number) is
        begin
            entries(thread)(ready_bit) := '1';
            if queued = queue_length or spilled > 0 then
                entries(thread)(spilled_bit) := '1';
                spilled := spilled + 1;
            else
                enqueue(thread);
            end if;
        end procedure;

        impure function is_thread(number : word) return boolean is
        begin
            return number < pages * 8;
        end function;

        impure function is_present(number : word) return boolean is
        begin
            return is_thread(number) and entries(to_integer(number(12 downto 0)))(mode_bits) /= "00";
        end function;

        -- A continuation, with everything that can refuse it.
        procedure continue_to(with_data : boolean; from_device : boolean) is
            variable thread : thread_number;
            variable page   : natural;
        begin
            if not is_present(current.a) then
                refuse(7, current.a);
                return;
            end if;
            thread := to_integer(current.a(12 downto 0));
            page := thread / 8;
            if current.mode = user_mode and entries(thread)(mode_bits) = kernel_mode then
                refuse(8, current.a);
            elsif entries(thread)(count_bits) = 0 then
                if from_device then
                    result.result := deferred;
                else
                    refuse(9, current.a);
                end if;
            elsif with_data and current.b >= lengths(page) then
                refuse(12, current.b);
            else
                if with_data then
                    result.result := write_word;
                    result.x := frames(page) + shift_left(current.b, 2);
                    result.y := current.c;
                end if;
                entries(thread)(count_bits) := entries(thread)(count_bits) - 1;
                if entries(thread)(count_bits) = 0 then
                    make_ready(thread);
                end if;
            end if;
        end procedure;

        -- Whether the issuer may change the target's page; refuses otherwise.
        procedure administer(allowed : out boolean) is
        begin
            allowed := false;
            if not is_thread(current.a) then
                refuse(7, current.a);
            elsif levels(to_integer(current.a(12 downto 3))) = free_page then
                refuse(7, current.a);
            elsif levels(to_integer(current.a(12 downto 3))) = system_page and current.mode = user_mode then
                refuse(8, current.a);
            else
                allowed := true;
            end if;
        end procedure;

        -- Whether the issuing thread has used up its continuations and is not ready again; refuses otherwise.
        procedure issuer_spent(spent : out boolean) is
            constant number : word := to_unsigned(current.thread, 32);
        begin
            spent := false;
            if not is_present(number) then
                refuse(7, number);
            elsif entries(current.thread)(count_bits) /= 0 or entries(current.thread)(ready_bit) = '1' then
                refuse(10, number);
            else
                spent := true;
            end if;
        end procedure;

        procedure serve is
            variable allowed : boolean;
            variable page    : natural;
            variable thread  : thread_number;
        begin
            result.result := done;
            result.x := (others => '0');
            result.y := (others => '0');
            case current.op is
                when op_continue =>
                    continue_to(false, false);
                when op_continue_data =>
                    continue_to(true, false);
                when op_signal =>
                    continue_to(false, true);
                when op_self =>
                    issuer_spent(allowed);
                    if allowed then
                        make_ready(current.thread);
                    end if;
                when op_rearm =>
                    issuer_spent(allowed);
                    if allowed then
                        entries(current.thread)(count_bits) := entries(current.thread)(fan_in_bits);
                    end if;
                when op_lock =>
                    if not is_present(current.a) then
                        refuse(7, current.a);
                    else
                        thread := to_integer(current.a(12 downto 0));
                        if current.mode = user_mode and entries(thread)(mode_bits) = kernel_mode then
                            refuse(8, current.a);
                        else
                            result.result := answer;
                            result.x(0) := not entries(thread)(lock_bit);
                            entries(thread)(lock_bit) := '1';
                        end if;
                    end if;
                when op_unlock =>
                    if not is_present(current.a) then
                        refuse(7, current.a);
                    else
                        thread := to_integer(current.a(12 downto 0));
                        if current.mode = user_mode and entries(thread)(mode_bits) /= user_mode then
                            refuse(8, current.a);
                        elsif entries(thread)(lock_bit) = '0' then
                            refuse(11, current.a);
                        else
                            entries(thread)(lock_bit) := '0';
                        end if;
                    end if;
                when op_create =>
                    result.result := answer;
                    result.x := (others => '1');
                    for candidate in 0 to pages - 1 loop
                        if levels(candidate) = free_page then
                            levels(candidate) := system_page;
                            if current.mode = user_mode then
                                levels(candidate) := user_page;
                            end if;
                            frames(candidate) := current.a;
                            lengths(candidate) := current.b;
                            result.x := to_unsigned(candidate * 8, 32);
                            exit;
                        end if;
                    end loop;
                when op_delete =>
                    administer(allowed);
                    if allowed then
                        page := to_integer(current.a(12 downto 3));
                        for index in 0 to 7 loop
                            allowed := allowed and entries(page * 8 + index)(ready_bit) = '0';
                        end loop;
                        if allowed then
                            levels(page) := free_page;
                            entries(page * 8 to page * 8 + 7) := (others => empty_entry);
                        else
                            refuse(10, current.a);
                        end if;
                    end if;
                when op_install =>
                    administer(allowed);
                    if allowed then
                        thread := to_integer(current.a(12 downto 0));
                        if current.c(9 downto 8) /= user_mode and current.mode = user_mode then
                            refuse(8, current.a);
                        elsif current.b(1 downto 0) /= 0 or shift_right(current.b, 2) >= text_length then
                            refuse(6, current.b);
                        elsif entries(thread)(ready_bit) = '1' then
                            refuse(10, current.a);
                        else
                            entries(thread) := empty_entry;
                            entries(thread)(code_bits) := current.b(20 downto 2);
                            entries(thread)(count_bits) := current.c(7 downto 0);
                            entries(thread)(fan_in_bits) := current.c(7 downto 0);
                            entries(thread)(mode_bits) := current.c(9 downto 8);
                        end if;
                    end if;
                when op_set_count =>
                    administer(allowed);
                    if allowed then
                        thread := to_integer(current.a(12 downto 0));
                        if entries(thread)(mode_bits) = "00" then
                            refuse(7, current.a);
                        elsif current.b = 0 or current.b > 255 then
                            refuse(13, current.b);
                        elsif entries(thread)(ready_bit) = '1' then
                            refuse(10, current.a);
                        else
                            entries(thread)(count_bits) := current.b(7 downto 0);
                            entries(thread)(fan_in_bits) := current.b(7 downto 0);
                        end if;
                    end if;
            end case;
        end procedure;

        -- Moves one spilled thread into the queue: the lowest of the next page that has one.
        procedure refill is
            variable page : natural;
        begin
            for step in 0 to pages - 1 loop
                page := (refill_page + step) mod pages;
                for index in 0 to 7 loop
                    if entries(page * 8 + index)(spilled_bit) = '1' then
                        entries(page * 8 + index)(spilled_bit) := '0';
                        spilled := spilled - 1;
                        refill_page := (page + 1) mod pages;
                        enqueue(page * 8 + index);
                        return;
                    end if;
                end loop;
            end loop;
        end procedure;
    begin
        if rising_edge(clock) then
            for index in 0 to ports - 1 loop
                if submit(index).valid = '1' then
                    latches(index) := submit(index);
                end if;
            end loop;

            -- Dispatch.
            out_dispatch.valid := '0';
            candidates := idle;
            if idle = 0 then
                candidates := preload;
            end if;
            if queued > 0 and candidates /= 0 then
                chosen := 0;
                while candidates(chosen) = '0' loop
                    chosen := chosen + 1;
                end loop;
                target_thread := queue(head);
                head := (head + 1) mod queue_length;
                queued := queued - 1;
                entries(target_thread)(ready_bit) := '0';
                out_dispatch := (valid => '1', to_unit => chosen, thread => target_thread,
                                 code => entries(target_thread)(code_bits),
                                 mode => entries(target_thread)(mode_bits),
                                 frame => frames(target_thread / 8),
                                 words => to_integer(lengths(target_thread / 8)));
            end if;

            -- Commit.
            result.valid := '0';
            if serving /= nothing then
                remaining := remaining - 1;
                if remaining = 0 then
                    if serving = a_refill then
                        refill;
                    else
                        result.valid := '1';
                        result.from_port := port_served;
                        serve;
                    end if;
                    serving := nothing;
                end if;
            end if;

            -- Grant.
            if serving = nothing then
                if spilled > 0 and queued < queue_length then
                    serving := a_refill;
                    remaining := service_cycles;
                else
                    found := false;
                    for step in 1 to ports loop
                        chosen := (last_port + step) mod ports;
                        if not found and latches(chosen).valid = '1' then
                            found := true;
                            current := latches(chosen);
                            latches(chosen).valid := '0';
                            last_port := chosen;
                            port_served := chosen;
                            serving := a_port;
                            remaining := service_cycles;
                        end if;
                    end loop;
                end if;
            end if;

            dispatch <= out_dispatch;
            completion <= result;
        end if;
    end process;
end architecture;
