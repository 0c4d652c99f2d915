-- Feeds a recorded trace to the controller and writes what it did, in the format of the recording.
--
-- The trace: a line `cycles N`, then in order of cycles `S cycle port operation thread mode a b c` for a request put
-- into a port (thread -1: a device), and `A cycle idle preload` when the units that can take a thread change.

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use std.textio.all;
use work.controller_types.all;

entity replay is
    generic (
        pages, queue_length, ports, service_cycles, text_length : positive;
        trace_file, output_file : string
    );
end entity;

architecture test of replay is
    signal clock      : std_logic := '0';
    signal submit     : request_array(0 to ports - 1);
    signal idle       : unsigned(31 downto 0) := (others => '0');
    signal preload    : unsigned(31 downto 0) := (others => '0');
    signal dispatch   : dispatched;
    signal completion : completed;
begin
    controller : entity work.activation_controller
        generic map (pages, queue_length, ports, service_cycles, text_length)
        port map (clock, submit, idle, preload, dispatch, completion);

    run : process
        file trace   : text open read_mode is trace_file;
        file output  : text open write_mode is output_file;
        variable input, row : line;
        variable kind  : character;
        variable at, cycles, index, number : integer;
        variable have  : boolean := false;

        impure function next_integer return integer is
            variable value : integer;
        begin
            read(input, value);
            return value;
        end function;

        impure function next_word return word is
        begin
            return unsigned(to_signed(next_integer, 32));
        end function;

        procedure put(value : integer) is
        begin
            write(row, ' ');
            write(row, value);
        end procedure;

        procedure put(value : word) is
        begin
            put(to_integer(signed(value)));
        end procedure;

        procedure fetch is
        begin
            have := not endfile(trace);
            if have then
                readline(trace, input);
                read(input, kind);
                at := next_integer;
            end if;
        end procedure;
    begin
        readline(trace, input);
        read(input, kind);
        cycles := next_integer;
        fetch;
        for now in 0 to cycles - 1 loop
            for port_number in submit'range loop
                submit(port_number).valid <= '0';
            end loop;
            while have and at = now loop
                if kind = 'A' then
                    idle <= next_word;
                    preload <= next_word;
                else
                    index := next_integer;
                    submit(index).valid <= '1';
                    submit(index).op <= operation'val(next_integer);
                    number := next_integer;
                    submit(index).from_thread <= '1';
                    submit(index).thread <= 0;
                    if number < 0 then
                        submit(index).from_thread <= '0';
                    else
                        submit(index).thread <= number;
                    end if;
                    submit(index).mode <= to_unsigned(next_integer, 2);
                    submit(index).a <= next_word;
                    submit(index).b <= next_word;
                    submit(index).c <= next_word;
                end if;
                fetch;
            end loop;
            wait for 500 ps;
            clock <= '1';
            wait for 250 ps;
            if dispatch.valid = '1' then
                write(row, 'D');
                put(now);
                put(dispatch.to_unit);
                put(dispatch.thread);
                put(to_integer(dispatch.code));
                put(to_integer(dispatch.mode));
                put(dispatch.frame);
                put(dispatch.words);
                writeline(output, row);
            end if;
            if completion.valid = '1' then
                write(row, 'C');
                put(now);
                put(completion.from_port);
                put(outcome'pos(completion.result));
                put(completion.x);
                put(completion.y);
                writeline(output, row);
            end if;
            wait for 250 ps;
            clock <= '0';
        end loop;
        wait;
    end process;
end architecture;
