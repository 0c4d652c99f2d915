//! The operations of the architecture: one table, a row each.
//!
//! A row says everything that this crate knows of an operation by name. Whoever needs a column asks for the table with
//! a macro of their own, `operations!(column)`, and takes from each row what is theirs; the match that they make of it
//! has an arm for every row, so that a new operation does not compile before it has every column.
//!
//! | column | says | names from | made by |
//! |---|---|---|---|
//! | name, completers | the variant of [`Operation`](crate::encoding::Operation) and its [`Opcode`](crate::encoding::Opcode) | [`encoding`](crate::encoding) | `encoding::operation` |
//! | memory | the access at the address in r3: kind, bytes, base update | `encoding::access` | `encoding::access` |
//! | effects | ends its block, serialises, uses counters, changes the frame, ... | `encoding::effects` | `encoding::effects` |
//! | implicit | registers read and written without being named (manual, volume 3, section 5.3) | `encoding::dependencies` | `encoding::dependencies` |
//! | handler | the interpreter's function, by [`call`](crate::processor::semantics) or inlined into its loop | `semantics` | `semantics` |
//!
//! Expressions of a row may use its completers and the whole `instruction`. Operands are not here but with the
//! encodings, of which an operation has several: [`Form`](crate::encoding::Form).

/// Hands the table to the macro `$column`: the name that rows give the instruction, then the rows.
///
/// A row is `Name { completer: Type = "comment", } => memory, effects, implicit, handler;`.
macro_rules! operations {
    ($column:ident) => {
        $column! { instruction;
        // Integer arithmetic and logic (A unit).
        /// `add r1 = r2, r3` and, with `carry`, `add r1 = r2, r3, 1`.
        Add {
            carry: bool = "Adds one more.",
        } => NONE, COMPUTES, NOTHING, integer::add_handler(carry);
        /// `sub r1 = r2, r3` and, with `borrow`, `sub r1 = r2, r3, 1`.
        Subtract {
            borrow: bool = "Subtracts one more.",
        } => NONE, COMPUTES, NOTHING, integer::subtract_handler(borrow);
        /// `sub r1 = immediate, r3`.
        SubtractFromImmediate => NONE, COMPUTES, NOTHING, call(integer::subtract_from_immediate);
        /// `addp4 r1 = r2, r3`: 32-bit pointer addition.
        AddPointer {
            first: Source = "`r2`, or the immediate (14 bits) in its place.",
        } => NONE, COMPUTES, NOTHING, integer::add_pointer_handler(first);
        /// `adds r1 = immediate, r3` (14 bits).
        AddImmediate => NONE, COMPUTES, NOTHING, integer::add_immediate_handler(instruction);
        /// `addl r1 = immediate, r3` (22 bits), the base being [`r3_short`](crate::encoding::Instruction::r3_short).
        AddLongImmediate => NONE, COMPUTES, NOTHING, integer::lower_add_long_immediate(instruction);
        /// `and`, `andcm`, `or`, `xor`: `r1 = first function r3`.
        Logical {
            function: Logical = "The bitwise function.",
            first: Source = "`r2`, or the immediate (8 bits).",
        } => NONE, COMPUTES, NOTHING, integer::logical_handler(function, first);
        /// `shladd r1 = r2, immediate, r3`: `(r2 << immediate) + r3`, the immediate 1 to 4.
        ShiftLeftAdd => NONE, COMPUTES, NOTHING, inline(Code::ShiftLeftAdd);
        /// `shladdp4 r1 = r2, immediate, r3`: the same with 32-bit pointer addition.
        ShiftLeftAddPointer => NONE, COMPUTES, NOTHING, call(integer::shift_left_add_pointer);
        /// `cmp`, `cmp4`: `p1, p2 = first relation r3`.
        Compare {
            relation: Relation = "The relation.",
            width: CompareWidth = "32 or 64 bits.",
            update: PredicateUpdate = "How the targets are written.",
            first: CompareSource = "The first operand.",
        } => NONE, COMPUTES, NOTHING, compare::lower_compare(instruction, (relation, width, update, first));

        // Parallel integer (A and I units). Operands are `r1 = r2, r3` unless said otherwise.
        /// `padd`.
        ParallelAdd {
            size: Size = "Element size.",
            saturation: Saturation = "Overflow behaviour.",
        } => NONE, COMPUTES, NOTHING, parallel::add_handler(size, saturation);
        /// `psub`.
        ParallelSubtract {
            size: Size = "Element size.",
            saturation: Saturation = "Overflow behaviour.",
        } => NONE, COMPUTES, NOTHING, parallel::subtract_handler(size, saturation);
        /// `pavg`.
        ParallelAverage {
            size: Size = "Element size.",
            round_away: bool = "`.raz`: rounds away from zero instead of to odd.",
        } => NONE, COMPUTES, NOTHING, parallel::average_handler(size, round_away);
        /// `pavgsub`.
        ParallelAverageSubtract {
            size: Size = "Element size.",
        } => NONE, COMPUTES, NOTHING, parallel::average_subtract_handler(size);
        /// `pcmp`.
        ParallelCompare {
            size: Size = "Element size.",
            relation: ParallelRelation = "The relation.",
        } => NONE, COMPUTES, NOTHING, parallel::compare_handler(size, relation);
        /// `pshladd2 r1 = r2, immediate, r3`.
        ParallelShiftLeftAdd => NONE, COMPUTES, NOTHING, call(parallel::shift_left_add_2);
        /// `pshradd2 r1 = r2, immediate, r3`.
        ParallelShiftRightAdd => NONE, COMPUTES, NOTHING, call(parallel::shift_right_add_2);
        /// `pmpyshr2 r1 = r2, r3, immediate`: the immediate is 0, 7, 15 or 16.
        ParallelMultiplyShiftRight {
            signedness: Signedness = "Element interpretation.",
        } => NONE, COMPUTES, NOTHING, parallel::multiply_shift_right_handler(signedness);
        /// `pmpy2.l`, `pmpy2.r`.
        ParallelMultiply {
            half: Half = "The elements multiplied.",
        } => NONE, COMPUTES, NOTHING, parallel::multiply_handler(half);
        /// `mix`.
        Mix {
            size: Size = "Element size.",
            half: Half = "The elements taken.",
        } => NONE, COMPUTES, NOTHING, parallel::mix_handler(size, half);
        /// `pack2`, `pack4`.
        Pack {
            size: Size = "Size of the source elements.",
            saturation: PackSaturation = "Result interpretation.",
        } => NONE, COMPUTES, NOTHING, parallel::pack_handler(size, saturation);
        /// `unpack`.
        Unpack {
            size: Size = "Element size.",
            half: UnpackHalf = "The half of the register spread.",
        } => NONE, COMPUTES, NOTHING, parallel::unpack_handler(size, half);
        /// `pmin1.u` (unsigned bytes), `pmin2` (signed pairs).
        ParallelMinimum {
            size: Size = "Element size: one or two bytes.",
        } => NONE, COMPUTES, NOTHING, parallel::minimum_handler(size);
        /// `pmax1.u` (unsigned bytes), `pmax2` (signed pairs).
        ParallelMaximum {
            size: Size = "Element size: one or two bytes.",
        } => NONE, COMPUTES, NOTHING, parallel::maximum_handler(size);
        /// `psad1`.
        ParallelSumAbsoluteDifference => NONE, COMPUTES, NOTHING, call(parallel::sum_absolute_difference);
        /// `mux1 r1 = r2, immediate`: the immediate is the 4-bit permutation code.
        MuxBytes => NONE, COMPUTES, NOTHING, call(parallel::mux_bytes);
        /// `mux2 r1 = r2, immediate`: the immediate is the 8-bit permutation.
        MuxPairs => NONE, COMPUTES, NOTHING, call(parallel::mux_pairs);
        /// `pshr r1 = r3, r2` or `r1 = r3, immediate`.
        ParallelShiftRight {
            size: Size = "Element size.",
            signedness: Signedness = "Arithmetic or logical.",
            count: Source = "The count's source.",
        } => NONE, COMPUTES, NOTHING, parallel::shift_right_handler(size, signedness, count);
        /// `pshl r1 = r2, r3` or `r1 = r2, immediate`. The variable count is in `r3`.
        ParallelShiftLeft {
            size: Size = "Element size.",
            count: Source = "The count's source: `Register` means `r3`.",
        } => NONE, COMPUTES, NOTHING, parallel::shift_left_handler(size, count);
        /// `popcnt r1 = r3`.
        PopulationCount => NONE, COMPUTES, NOTHING, call(integer::population_count);
        /// `clz r1 = r3`.
        CountLeadingZeros => NONE, LOCAL, NOTHING, call(integer::count_leading_zeros);
        /// `czx r1 = r3`.
        ComputeZeroIndex {
            size: Size = "Element size: one or two bytes.",
            half: Half = "The side the search starts from.",
        } => NONE, COMPUTES, NOTHING, parallel::zero_index_handler(size, half);
        /// `mpy4 r1 = r2, r3`: unsigned 32 by 32 to 64 bits.
        MultiplyWord => NONE, LOCAL, NOTHING, call(integer::multiply_word);
        /// `mpyshl4 r1 = r2, r3`.
        MultiplyShiftLeftWord => NONE, LOCAL, NOTHING, call(integer::multiply_shift_left_word);

        // Shifts, bit fields and bit tests (I unit).
        /// `shr r1 = r3, r2`: the count is in `r2`.
        ShiftRight {
            signedness: Signedness = "Arithmetic or logical.",
        } => NONE, COMPUTES, NOTHING, integer::shift_right_handler(signedness);
        /// `shl r1 = r2, r3`: the count is in `r3`.
        ShiftLeft => NONE, COMPUTES, NOTHING, inline(Code::ShiftLeft);
        /// `shrp r1 = r2, r3, immediate`.
        ShiftRightPair => NONE, COMPUTES, NOTHING, call(integer::shift_right_pair);
        /// `extr r1 = r3, position, length`.
        Extract {
            signedness: Signedness = "Sign extension or zero extension.",
        } => NONE, COMPUTES, NOTHING, integer::lower_extract(instruction, signedness);
        /// `dep.z r1 = r2, position, length` or `r1 = immediate, position, length`.
        DepositZero {
            value: Source = "The field's value.",
        } => NONE, COMPUTES, NOTHING, integer::lower_deposit_zero(instruction, value);
        /// `dep r1 = r2, r3, position, length` or `r1 = immediate, r3, position, length` (immediate 0 or -1).
        Deposit {
            value: Source = "The field's value.",
        } => NONE, COMPUTES, NOTHING, integer::lower_deposit(instruction, value);
        /// `zxt r1 = r3`.
        ZeroExtend {
            size: Size = "Size of the source.",
        } => NONE, COMPUTES, NOTHING, integer::zero_extend_handler(size);
        /// `sxt r1 = r3`.
        SignExtend {
            size: Size = "Size of the source.",
        } => NONE, COMPUTES, NOTHING, integer::sign_extend_handler(size);
        /// `tbit p1, p2 = r3, position`.
        TestBit {
            relation: BitRelation = "What makes the result 1.",
            update: PredicateUpdate = "How the targets are written.",
        } => NONE, COMPUTES, NOTHING, compare::lower_test_bit(instruction, relation, update);
        /// `tnat p1, p2 = r3`.
        TestNat {
            relation: BitRelation = "What makes the result 1.",
            update: PredicateUpdate = "How the targets are written.",
        } => NONE, COMPUTES, NOTHING, compare::lower_test_nat(instruction, relation, update);
        /// `tf p1, p2 = immediate`: tests a feature bit, the immediate 32 to 63.
        TestFeature {
            relation: BitRelation = "What makes the result 1.",
            update: PredicateUpdate = "How the targets are written.",
        } => NONE, LOCAL, NOTHING, compare::lower_test_feature(instruction, relation, update);

        // Operations of every unit.
        /// `break immediate`: 21 bits, or 62 on the X unit.
        Break => NONE, ENDS, NOTHING, call(system::break_);
        /// `nop immediate`.
        Nop => NONE, LOCAL, NOTHING, call(system::nothing);
        /// `hint immediate`.
        Hint => NONE, LOCAL, NOTHING, call(system::hint);
        /// `movl r1 = immediate` (64 bits, X unit).
        MoveLong => NONE, COMPUTES, NOTHING, inline(Code::MoveImmediate);

        // Moves between register files (I and M units).
        /// `mov b1 = r2`; the immediate is the displacement of the tag, a branch-prediction hint.
        MoveToBranch => NONE, WRITES_BRANCH, NOTHING, inline(Code::MoveToBranch);
        /// `mov r1 = b2`.
        MoveFromBranch => NONE, COMPUTES, NOTHING, inline(Code::MoveFromBranch);
        /// `mov pr = r2, immediate`: the immediate is the sign-extended mask, bit 0 clear.
        MoveToPredicates => NONE, LOCAL, NOTHING, call(moves::to_predicates);
        /// `mov pr.rot = immediate`: the sign-extended value, low 16 bits clear.
        MoveToRotatingPredicates => NONE, LOCAL, NOTHING, call(moves::to_rotating_predicates);
        /// `mov r1 = pr`.
        MoveFromPredicates => NONE, COMPUTES, NOTHING, call(moves::from_predicates);
        /// `mov r1 = ip`.
        MoveFromIp => NONE, LOCAL, NOTHING, call(moves::from_ip);
        /// `mov ar3 = r2` or `ar3 = immediate`, on the I unit or the M unit.
        MoveToApplication {
            value: Source = "The value.",
        } => NONE, to_application(instruction), to_application(instruction),
            moves::lower_application(instruction, moves::to_application_handler(instruction, value));
        /// `mov r1 = ar3`, on the I unit or the M unit.
        MoveFromApplication => NONE, from_application(instruction), NOTHING,
            moves::lower_application(instruction, moves::from_application_handler(instruction));
        /// `mov cr3 = r2`.
        MoveToControl => NONE, to_control(instruction), NOTHING,
            system::control::lower_control(instruction, call(system::control::to_control));
        /// `mov r1 = cr3`.
        MoveFromControl => NONE, LOCAL, NOTHING,
            system::control::lower_control(instruction, call(system::control::from_control));
        /// `mov psr.l = r2`.
        MoveToPsrLower => NONE, ENDS_WITH_STATUS, NOTHING, call(system::control::to_lower);
        /// `mov r1 = psr`.
        MoveFromPsr => NONE, LOCAL, NOTHING, call(system::control::from_status);
        /// `mov psr.um = r2`.
        MoveToUserMask => NONE, ENDS_WITH_STATUS, NOTHING, call(moves::to_user_mask);
        /// `mov r1 = psr.um`.
        MoveFromUserMask => NONE, LOCAL, NOTHING, call(moves::from_user_mask);
        /// `mov file[r3] = r2`.
        MoveToIndirect {
            file: IndirectFile = "The register file.",
        } => NONE, to_indirect(file), NOTHING, system::to_indirect_handler(file);
        /// `mov r1 = file[r3]`.
        MoveFromIndirect {
            file: IndirectFile = "The register file.",
        } => NONE, from_indirect(file), NOTHING, system::from_indirect_handler(file);
        /// `mov dahr = immediate` (16 bits); the register is [`dahr`](crate::encoding::Instruction::dahr).
        MoveToDataAccessHint => NONE, LOCAL, NOTHING, call(system::nothing);
        /// `setf f1 = r2`.
        SetFloat {
            form: FloatTransfer = "The transfer form.",
        } => NONE, LOCAL, NOTHING, float::moves::lower_set(instruction, form);
        /// `getf r1 = f2`.
        GetFloat {
            form: FloatTransfer = "The transfer form.",
        } => NONE, LOCAL, NOTHING, float::moves::get_handler(form);

        // Memory (M unit). Addresses are in `r3`.
        /// `ld r1 = [r3]`.
        Load {
            size: Size = "Access size.",
            kind: LoadKind = "Speculation, check and ordering.",
            update: BaseUpdate = "Base update.",
        } => reads(size.bytes(), update), load(kind), load(kind), memory::load_handler(size, kind, update);
        /// `ld16 r1, ar.csd = [r3]`.
        LoadSixteen {
            ordering: Ordering = "None or acquire.",
        } => reads(16, BaseUpdate::None), LOCAL, NOTHING, memory::load_sixteen_handler(ordering);
        /// `ldf f1 = [r3]`.
        LoadFloat {
            format: FloatFormat = "Memory format.",
            kind: LoadKind = "Speculation and check.",
            update: BaseUpdate = "Base update.",
        } => reads(format.bytes(), update), load(kind), NOTHING,
            float::memory::lower_load(instruction, format, kind, update);
        /// `ldfp f1, f2 = [r3]`; the base update adds the access size (the immediate, 8 or 16).
        LoadFloatPair {
            format: FloatFormat = "Memory format of each half: single, double or significand.",
            kind: LoadKind = "Speculation and check.",
            update: BaseUpdate = "Whether `r3` moves on by the access size: `None` or `Immediate`.",
        } => reads(2 * format.bytes(), update), load(kind), NOTHING,
            float::memory::lower_load_pair(instruction, format, kind, update);
        /// `st [r3] = r2`.
        Store {
            size: Size = "Access size.",
            kind: StoreKind = "Ordering and spill.",
            update: BaseUpdate = "Base update: none or immediate.",
        } => writes(size.bytes(), update), LOCAL, store(kind), memory::store_handler(size, kind, update);
        /// `st16 [r3] = r2, ar.csd`.
        StoreSixteen {
            ordering: Ordering = "None or release.",
        } => writes(16, BaseUpdate::None), LOCAL, NOTHING, call(memory::store_sixteen);
        /// `stf [r3] = f2`.
        StoreFloat {
            format: FloatFormat = "Memory format; `Register` is `stf.spill`.",
            update: BaseUpdate = "Base update: none or immediate.",
        } => writes(format.bytes(), update), LOCAL, NOTHING, float::memory::lower_store(instruction, format, update);
        /// `lfetch [r3]`.
        LineFetch {
            fault: bool = "`.fault`: raises the faults a load would.",
            exclusive: bool = "`.excl`: asks for exclusive ownership.",
            update: BaseUpdate = "Base update.",
        } => prefetches(update), LOCAL, NOTHING, memory::line_fetch_handler(fault, update);
        /// `lfetch.count [r3], count, stride`: the immediate is the stride in bytes.
        LineFetchCount => prefetches(BaseUpdate::None), LOCAL, NOTHING, call(system::nothing);
        /// `cmpxchg r1 = [r3], r2, ar.ccv`.
        CompareExchange {
            size: Size = "Access size.",
            ordering: Ordering = "Acquire or release.",
        } => exchanges(size.bytes()), LOCAL, NOTHING, memory::compare_exchange_handler(size);
        /// `cmp8xchg16 r1 = [r3], r2, ar.csd, ar.ccv`.
        CompareExchangeSixteen {
            ordering: Ordering = "Acquire or release.",
        } => exchanges(16), LOCAL, NOTHING, call(memory::compare_exchange_sixteen);
        /// `xchg r1 = [r3], r2`: always acquire.
        Exchange {
            size: Size = "Access size.",
        } => exchanges(size.bytes()), LOCAL, NOTHING, memory::exchange_handler(size);
        /// `fetchadd r1 = [r3], immediate`: the immediate is ±1, ±4, ±8 or ±16.
        FetchAdd {
            size: Size = "Access size: four or eight bytes.",
            ordering: Ordering = "Acquire or release.",
        } => exchanges(size.bytes()), LOCAL, NOTHING, memory::fetch_add_handler(size);
        /// `chk.s r2, target`: branches when `r2` is NaT. On the I unit or the M unit.
        CheckSpeculative => NONE, TRANSFERS, NOTHING, call(branch::check_speculative);
        /// `chk.s f2, target`: branches when `f2` is NaTVal.
        CheckSpeculativeFloat => NONE, TRANSFERS, NOTHING, call(float::moves::check_speculative);
        /// `chk.a r1, target`: branches on an ALAT miss.
        CheckAdvanced {
            clear: bool = "`.clr`: removes the entry; otherwise (`.nc`) it stays.",
        } => NONE, CHECKS_ALAT, NOTHING, branch::check_advanced_handler(clear);
        /// `chk.a f1, target`.
        CheckAdvancedFloat {
            clear: bool = "`.clr`: removes the entry.",
        } => NONE, CHECKS_ALAT, NOTHING, float::moves::check_advanced_handler(clear);
        /// `invala`: empties the ALAT.
        InvalidateAlat => NONE, LOCAL, NOTHING, call(memory::invalidate_all);
        /// `invala.e r1`.
        InvalidateAlatEntry => NONE, BY_NAME, NOTHING, call(memory::invalidate_entry);
        /// `invala.e f1`.
        InvalidateAlatEntryFloat => NONE, BY_NAME, NOTHING, call(float::moves::invalidate_entry);
        /// `fwb`.
        FlushWriteBuffers => NONE, LOCAL, NOTHING, call(system::nothing);
        /// `mf`.
        MemoryFence => NONE, LOCAL, NOTHING, call(memory::memory_fence);
        /// `mf.a`.
        MemoryFenceAcceptance => NONE, LOCAL, NOTHING, call(system::nothing);
        /// `fc r3` and `fc.i r3`.
        FlushCache {
            instruction_cache: bool = "`.i`: only makes the instruction cache coherent.",
        } => FLUSHES, LOCAL, NOTHING, call(memory::flush_cache);
        /// `sync.i`.
        SynchronizeInstructionCache => NONE, SERIALIZES, NOTHING, call(system::nothing);
        /// `srlz.d`, `srlz.i`.
        Serialize {
            side: Side = "Data or instruction serialization.",
        } => NONE, SERIALIZES, NOTHING, call(system::nothing);

        // Register stack (M and B units).
        /// `alloc r1 = ar.pfs, i, l, o, r`: see [`sof`](crate::encoding::Instruction::sof) and its neighbours.
        Allocate => NONE, FRAME, MARKER, stack::lower_allocate(instruction);
        /// `flushrs`.
        FlushRegisterStack => NONE, FRAME, SPILLS, call(stack::flush);
        /// `loadrs`.
        LoadRegisterStack => NONE, FRAME, SPILLS, call(stack::load);
        /// `cover`.
        Cover => NONE, ENDS.union(FRAME).union(SENSITIVE), COVERS, call(stack::cover);
        /// `clrrrb` and `clrrrb.pr`.
        ClearRegisterRename {
            predicates_only: bool = "`.pr`: only the predicate base.",
        } => NONE, FRAME, MARKER, stack::clear_rename_handler(predicates_only);

        // System (M and B units).
        /// `sum immediate` (24 bits).
        SetUserMask => NONE, ENDS_WITH_STATUS, STATUS, call(moves::set_user_mask);
        /// `rum immediate`.
        ResetUserMask => NONE, ENDS_WITH_STATUS, STATUS, call(moves::reset_user_mask);
        /// `ssm immediate`.
        SetSystemMask => NONE, ENDS_WITH_STATUS, STATUS, call(system::control::set_system_mask);
        /// `rsm immediate`.
        ResetSystemMask => NONE, ENDS_WITH_STATUS, STATUS, call(system::control::reset_system_mask);
        /// `probe r1 = r3, r2` or `r1 = r3, immediate`.
        Probe {
            access: ProbeAccess = "The access asked about: read or write.",
            level: Source = "The privilege level: `r2`, or the immediate.",
        } => NONE, LOCAL, NOTHING, system::translation::probe_handler(access, level);
        /// `probe.fault r3, immediate`.
        ProbeFault {
            access: ProbeAccess = "The access.",
        } => NONE, LOCAL, NOTHING, system::translation::probe_fault_handler(access);
        /// `itc r2`.
        InsertTranslationCache {
            side: Side = "Data or instruction.",
        } => NONE, TRANSLATIONS, INSERTS, system::translation::insert_cache_handler(side);
        /// `itr dtr[r3] = r2`, `itr itr[r3] = r2`.
        InsertTranslationRegister {
            side: Side = "Data or instruction.",
        } => NONE, TRANSLATIONS, INSERTS, system::translation::insert_register_handler(side);
        /// `ptc.l`, `ptc.g`, `ptc.ga`: `r3, r2`.
        PurgeTranslationCache {
            scope: PurgeScope = "How far the purge reaches.",
        } => NONE, TRANSLATIONS, NOTHING, system::translation::purge_cache_handler(scope);
        /// `ptc.e r3`.
        PurgeTranslationCacheEntry => NONE, TRANSLATIONS, NOTHING, call(system::translation::purge_everything);
        /// `ptr r3, r2`.
        PurgeTranslationRegister {
            side: Side = "Data or instruction.",
        } => NONE, TRANSLATIONS, NOTHING, system::translation::purge_register_handler(side);
        /// `thash r1 = r3`.
        TranslationHash => NONE, SENSITIVE, HASHES, call(system::translation::translation_hash);
        /// `ttag r1 = r3`.
        TranslationTag => NONE, SENSITIVE, HASHES, call(system::translation::translation_tag);
        /// `tpa r1 = r3`.
        TranslateToPhysical => NONE, LOCAL, NOTHING, call(system::translation::translate_to_physical);
        /// `tak r1 = r3`.
        TranslationAccessKey => NONE, LOCAL, NOTHING, call(system::translation::translation_access_key);
        /// `epc`.
        EnterPrivilegedCode => NONE, ENDS_WITH_STATUS, ENTERS, call(system::control::enter_privileged_code);
        /// `rfi`.
        ReturnFromInterruption => NONE, ENDS_WITH_STATUS.union(FRAME).union(SERIALIZES).union(TRANSFERS),
            RETURNS_FROM_INTERRUPTION, call(system::control::return_from_interruption);
        /// `bsw.0`, `bsw.1`.
        BankSwitch {
            bank: u8 = "The bank that becomes visible: 0 or 1.",
        } => NONE, CHANGES_STATUS, STATUS, system::control::bank_switch_handler(bank);
        /// `vmsw.0`, `vmsw.1`.
        VirtualMachineSwitch {
            enter: bool = "The new value of PSR.vm.",
        } => NONE, ENDS_WITH_STATUS, STATUS, system::control::virtual_machine_switch_handler(enter);

        // Branches (B and X units). The immediate is the displacement in bytes from the bundle.
        /// `br.cond`, `br.wexit`, `br.wtop`, `br.cloop`, `br.cexit`, `br.ctop`, and `brl.cond`.
        Branch {
            kind: BranchKind = "What decides and what is updated.",
            target: Target = "Where to.",
        } => NONE, branch(instruction, kind), branch(kind), branch::lower_branch(instruction, kind, target);
        /// `br.call b1 = target`, `brl.call b1 = target`.
        Call {
            target: Target = "Where to.",
        } => NONE, leaves(instruction).union(FRAME).union(WRITES_BRANCH), CALLS, branch::call_handler(target);
        /// `br.ret b2`.
        Return => NONE, leaves(instruction).union(FRAME).union(CHANGES_STATUS), RETURNS, call(branch::return_);
        /// `br.ia b2`: to the IA-32 instruction set.
        BranchIa32 => NONE, ENDS.union(TRANSFERS), NOTHING, call(branch::branch_ia32);
        /// `brp`: a prediction for a relative target. The displacement of the tag is
        /// [`tag`](crate::encoding::Instruction::tag).
        BranchPredict => NONE, LOCAL, NOTHING, call(system::nothing);
        /// `brp b2` and `brp.ret b2`.
        BranchPredictIndirect {
            return_: bool = "`.ret`: predicts a return.",
        } => NONE, LOCAL, NOTHING, call(system::nothing);

        // Floating point (F unit).
        /// `fma`, `fms`, `fnma`: `f1 = f3, f4, f2`.
        FloatMultiplyAdd {
            function: MultiplyAdd = "Which of the three.",
            precision: Precision = "Precision completer.",
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::arithmetic::lower_multiply_add(instruction, function, precision, status);
        /// `fpma`, `fpms`, `fpnma`: `f1 = f3, f4, f2`.
        ParallelFloatMultiplyAdd {
            function: MultiplyAdd = "Which of the three.",
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::arithmetic::lower_parallel_multiply_add(instruction, function, status);
        /// `xma f1 = f3, f4, f2`.
        FixedMultiplyAdd {
            part: FixedPart = "The part of the result.",
        } => NONE, LOCAL, NOTHING, float::arithmetic::lower_fixed_multiply_add(instruction, part);
        /// `fselect f1 = f3, f4, f2`.
        FloatSelect => NONE, LOCAL, NOTHING, float::moves::lower_select(instruction);
        /// `fcmp p1, p2 = f2, f3`.
        FloatCompare {
            relation: FloatRelation = "The relation.",
            unconditional: bool = "`.unc`.",
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::compare::lower_compare(instruction, relation, unconditional, status);
        /// `fclass p1, p2 = f2, immediate` (9 bits).
        FloatClass {
            unconditional: bool = "`.unc`.",
        } => NONE, LOCAL, NOTHING, float::compare::lower_class(instruction, unconditional);
        /// `frcpa f1, p2 = f2, f3`.
        FloatReciprocalApproximation {
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::arithmetic::lower_reciprocal(instruction, status);
        /// `frsqrta f1, p2 = f3`.
        FloatReciprocalSquareRootApproximation {
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::arithmetic::lower_reciprocal_root(instruction, status);
        /// `fprcpa f1, p2 = f2, f3`.
        ParallelFloatReciprocalApproximation {
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::arithmetic::lower_parallel_reciprocal(instruction, status);
        /// `fprsqrta f1, p2 = f3`.
        ParallelFloatReciprocalSquareRootApproximation {
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::arithmetic::lower_parallel_reciprocal_root(instruction, status);
        /// `fmin`, `fmax`, `famin`, `famax`: `f1 = f2, f3`.
        FloatExtremum {
            select: Extremum = "Which value is taken.",
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::arithmetic::lower_extremum(instruction, select, status);
        /// `fpmin`, `fpmax`, `fpamin`, `fpamax`: `f1 = f2, f3`.
        ParallelFloatExtremum {
            select: Extremum = "Which value is taken.",
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::arithmetic::lower_parallel_extremum(instruction, select, status);
        /// `fpcmp f1 = f2, f3`.
        ParallelFloatCompare {
            relation: ParallelFloatRelation = "The relation.",
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::arithmetic::lower_parallel_compare(instruction, relation, status);
        /// `fmerge f1 = f2, f3`.
        FloatMerge {
            merge: Merge = "What comes from `f2`.",
        } => NONE, LOCAL, NOTHING, float::moves::lower_merge(instruction, merge);
        /// `fpmerge f1 = f2, f3`.
        ParallelFloatMerge {
            merge: Merge = "What comes from `f2`.",
        } => NONE, LOCAL, NOTHING, float::moves::lower_parallel_merge(instruction, merge);
        /// `fmix f1 = f2, f3`.
        FloatMix {
            mix: FloatMix = "The elements taken.",
        } => NONE, LOCAL, NOTHING, float::moves::lower_mix(instruction, mix);
        /// `fsxt f1 = f2, f3`.
        FloatSignExtend {
            half: Half = "The element whose sign fills the left result.",
        } => NONE, LOCAL, NOTHING, float::moves::lower_sign_extend(instruction, half);
        /// `fpack f1 = f2, f3`.
        FloatPack => NONE, LOCAL, NOTHING, float::moves::lower_pack(instruction);
        /// `fswap f1 = f2, f3`.
        FloatSwap {
            swap: FloatSwap = "What is negated.",
        } => NONE, LOCAL, NOTHING, float::moves::lower_swap(instruction, swap);
        /// `fand`, `fandcm`, `for`, `fxor`: `f1 = f2, f3` on the significands.
        FloatLogical {
            function: Logical = "The bitwise function.",
        } => NONE, LOCAL, NOTHING, float::moves::lower_logical(instruction, function);
        /// `fcvt.fx f1 = f2`.
        ConvertToFixed {
            signedness: Signedness = "Signed (`.fx`) or unsigned (`.fxu`) result.",
            rounding: FixedRounding = "Rounding.",
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR, float::arithmetic::lower_to_fixed(instruction, signedness, rounding, status);
        /// `fpcvt.fx f1 = f2`.
        ParallelConvertToFixed {
            signedness: Signedness = "Signed or unsigned result.",
            rounding: FixedRounding = "Rounding.",
            status: StatusField = "Status field.",
        } => NONE, LOCAL, READS_FPSR,
            float::arithmetic::lower_parallel_to_fixed(instruction, signedness, rounding, status);
        /// `fcvt.xf f1 = f2`.
        ConvertFromFixed => NONE, LOCAL, NOTHING, float::arithmetic::lower_from_fixed(instruction);
        /// `fsetc amask, omask`: the immediate is the AND mask, [`omask`](crate::encoding::Instruction::omask) the OR
        /// mask.
        FloatSetControls {
            status: StatusField = "Status field.",
        } => NONE, LOCAL, UPDATES_FPSR, float::moves::lower_set_controls(instruction, status);
        /// `fclrf`.
        FloatClearFlags {
            status: StatusField = "Status field.",
        } => NONE, LOCAL, UPDATES_FPSR, float::moves::lower_clear_flags(instruction, status);
        /// `fchkf target`.
        FloatCheckFlags {
            status: StatusField = "Status field.",
        } => NONE, TRANSFERS, READS_FPSR, float::moves::lower_check_flags(instruction, status);
        }
    };
}
pub(crate) use operations;
