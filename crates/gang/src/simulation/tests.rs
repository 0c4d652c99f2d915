//! The simulator keeps its books: time is neither lost nor invented, work is done once, runs repeat.

use super::*;
use crate::ratio::Ratio;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn workload(phases: Vec<Phase>, spin_ns: u64, sharing: Sharing) -> Workload {
    Workload {
        name: "test".into(),
        phases,
        spin_ns,
        sharing,
    }
}

fn barriers(work_ns: u64, spin_ns: u64) -> Workload {
    let phases = vec![
        Phase::Compute {
            work_ns,
            varies_permille: 100,
        },
        Phase::Barrier,
    ];
    workload(phases, spin_ns, Sharing::Everyone { regions: 10 })
}

fn machine(name: &str, vcpus: usize, instances: Vec<(Vec<usize>, Workload)>) -> Machine {
    let instances = instances
        .into_iter()
        .map(|(vcpus, workload)| Instance { vcpus, workload })
        .collect();
    Machine {
        name: name.into(),
        vcpus,
        instances,
    }
}

/// The paper's *double* scenario on two cores: a machine with two independent threads and one with a single thread.
fn small_double(work: &Workload) -> Scenario {
    Scenario {
        topology: Topology::flat(2),
        machines: vec![
            machine("one", 2, vec![(vec![0], work.clone()), (vec![1], work.clone())]),
            machine("two", 1, vec![(vec![0], work.clone())]),
        ],
        costs: Costs {
            switch_ns: 0,
            fault_ns: 0,
            shared_core_permille: 1000,
            across_sockets_permille: 1000,
        },
        housekeeping: None,
        horizon_ns: 600 * MS,
        seed: 1,
    }
}

fn given(scenario: &Scenario, sets: CoscheduledSets, idle: IdleCores) -> Outcome {
    let schedule = Schedule::Sets {
        sets,
        slot_ns: 10 * MS,
        idle,
        placement: Placement::FirstFit,
    };
    simulate(scenario, &schedule)
}

#[test]
fn the_double_scenario_wastes_a_quarter_whole_and_nothing_in_parts() {
    let scenario = small_double(&barriers(MS, u64::MAX));
    let full = given(&scenario, scenario.full_sets(), IdleCores::Kept).host();
    assert_eq!(full.kept_idle_ns * 4, full.total_ns());
    let parts = given(&scenario, scenario.given_sets(), IdleCores::Kept).host();
    assert_eq!(parts.kept_idle_ns, 0);
    assert_eq!(
        parts.working_ns * 3,
        full.working_ns * 4,
        "the third that was lost is gained"
    );
}

#[test]
fn a_torn_team_spins_and_a_whole_one_does_not() {
    let steady = vec![
        Phase::Compute {
            work_ns: MS,
            varies_permille: 0,
        },
        Phase::Barrier,
    ];
    let steady = workload(steady, u64::MAX, Sharing::Nothing);
    let mut scenario = small_double(&steady);
    scenario.machines[0].instances = vec![Instance {
        vcpus: vec![0, 1],
        workload: steady,
    }];
    let torn = given(&scenario, CoscheduledSets::singles(3), IdleCores::Kept).host();
    let whole = given(&scenario, scenario.full_sets(), IdleCores::Kept).host();
    assert_eq!(whole.spinning_ns, 0);
    assert!(torn.spinning_ns > torn.working_ns / 4, "{torn:?}");
}

#[test]
fn a_waiting_thread_blocks_when_its_patience_ends() {
    let scenario = small_double(&barriers(MS, 0));
    let outcome = given(&scenario, CoscheduledSets::singles(3), IdleCores::Filled);
    assert_eq!(outcome.host().spinning_ns, 0);
}

#[test]
fn a_lock_admits_one_thread_at_a_time() {
    let locked = workload(vec![Phase::Locked { work_ns: MS }], u64::MAX, Sharing::Nothing);
    let mut scenario = small_double(&locked);
    scenario.machines = vec![machine("one", 2, vec![(vec![0, 1], locked)])];
    let outcome = given(&scenario, scenario.full_sets(), IdleCores::Kept);
    assert_eq!(
        outcome.host().working_ns,
        scenario.horizon_ns,
        "two cores do the work of one"
    );
    assert_eq!(outcome.instances[0].thread_rounds, 600);
}

#[test]
fn sharing_is_detected_and_becomes_sets() {
    let team = barriers(MS, u64::MAX);
    let mut scenario = small_double(&team);
    scenario.topology = Topology::flat(4);
    scenario.machines = vec![
        machine(
            "one",
            4,
            vec![(vec![0, 2], team.clone()), (vec![1, 3], team.clone())],
        ),
        machine("two", 2, vec![(vec![0, 1], team)]),
    ];
    scenario.housekeeping = Some(Housekeeping {
        period_ns: 50 * MS,
        work_ns: MS / 10,
        regions: 2,
    });
    scenario.horizon_ns = 3000 * MS;
    for selection in [Selection::Factor(Ratio::new(3, 2)), Selection::Modularity] {
        let automatic = Automatic {
            selection,
            scan_period_ns: 100 * MS,
            reevaluation_ns: 1000 * MS,
            reset_ns: 100 * MS,
            keep_permille: 500,
            detector: DetectorSettings::default(),
        };
        let (slot_ns, idle, placement) = (10 * MS, IdleCores::Kept, Placement::FirstFit);
        let outcome = simulate(
            &scenario,
            &Schedule::Automatic {
                automatic,
                slot_ns,
                idle,
                placement,
            },
        );
        let (_, found) = outcome.sets.last().expect("sets");
        assert_eq!(*found, scenario.given_sets(), "{selection:?}");
    }
}

#[test]
fn hardware_threads_share_their_core_and_placement_avoids_it() {
    let alone = workload(
        vec![Phase::Compute {
            work_ns: MS,
            varies_permille: 0,
        }],
        0,
        Sharing::Nothing,
    );
    let mut scenario = small_double(&alone);
    scenario.topology = Topology::regular(1, 1, 2, 2);
    scenario.machines = vec![machine("one", 2, vec![(vec![0, 1], alone)])];
    scenario.costs.shared_core_permille = 500;
    let rounds = |placement| {
        let sets = scenario.full_sets();
        let schedule = Schedule::Sets {
            sets,
            slot_ns: 10 * MS,
            idle: IdleCores::Kept,
            placement,
        };
        simulate(&scenario, &schedule).instances[0].thread_rounds
    };
    assert_eq!(rounds(Placement::Nearest), 1200);
    assert_eq!(rounds(Placement::FirstFit), 600);
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let phase = prop_oneof![
        (1_u64..3 * MS, 0_u64..500).prop_map(|(work_ns, varies_permille)| Phase::Compute {
            work_ns,
            varies_permille
        }),
        Just(Phase::Barrier),
        (1_u64..MS).prop_map(|work_ns| Phase::Locked { work_ns }),
    ];
    let team = (
        proptest::collection::vec(phase, 0..4),
        prop_oneof![Just(0), Just(200_000), Just(u64::MAX)],
        1_usize..4,
    );
    let machines = proptest::collection::vec(proptest::collection::vec(team, 1..3), 1..4);
    (1_usize..6, machines, any::<bool>(), 0_u64..20_000, any::<u64>()).prop_map(
        |(cores, teams, keeps_house, switch_ns, seed)| Scenario {
            topology: Topology::flat(cores),
            machines: teams
                .into_iter()
                .map(|teams| {
                    let mut vcpus = 0;
                    let instances = teams
                        .into_iter()
                        .map(|(mut phases, spin_ns, threads)| {
                            phases.push(Phase::Compute {
                                work_ns: MS,
                                varies_permille: 100,
                            });
                            vcpus += threads;
                            let work = workload(phases, spin_ns, Sharing::Everyone { regions: 3 });
                            ((vcpus - threads..vcpus).collect(), work)
                        })
                        .collect();
                    machine("m", vcpus + 1, instances)
                })
                .collect(),
            costs: Costs {
                switch_ns,
                fault_ns: 1000,
                shared_core_permille: 1000,
                across_sockets_permille: 1000,
            },
            housekeeping: keeps_house.then_some(Housekeeping {
                period_ns: 7 * MS,
                work_ns: 50_000,
                regions: 1,
            }),
            horizon_ns: 100 * MS,
            seed,
        },
    )
}

fn schedules(scenario: &Scenario) -> Vec<Schedule> {
    let (slot_ns, placement) = (6 * MS, Placement::Nearest);
    let automatic = Automatic {
        selection: Selection::Modularity,
        scan_period_ns: 10 * MS,
        reevaluation_ns: 30 * MS,
        reset_ns: 0,
        keep_permille: 500,
        detector: DetectorSettings::default(),
    };
    let given = |sets, idle| Schedule::Sets {
        sets,
        slot_ns,
        idle,
        placement,
    };
    vec![
        Schedule::Free(Free { slot_ns }),
        Schedule::Relaxed(Relaxed {
            slot_ns,
            skew_max_ns: 2 * MS,
            placement,
        }),
        given(scenario.full_sets(), IdleCores::Kept),
        given(scenario.given_sets(), IdleCores::Filled),
        Schedule::Automatic {
            automatic,
            slot_ns,
            idle: IdleCores::Filled,
            placement,
        },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn books_balance_and_runs_repeat(scenario in scenarios()) {
        for schedule in schedules(&scenario) {
            let outcome = simulate(&scenario, &schedule);
            for core in &outcome.cores {
                prop_assert_eq!(core.total_ns(), scenario.horizon_ns);
            }
            let ran: u64 = outcome.ran_ns.iter().sum();
            let host = outcome.host();
            prop_assert!(ran <= scenario.horizon_ns * outcome.cores.len() as u64);
            prop_assert_eq!(ran, host.total_ns() - host.kept_idle_ns - host.idle_ns);
            prop_assert_eq!(simulate(&scenario, &schedule), outcome, "the same inputs, the same outcome");
        }
    }

    /// Work is never lost or done twice: rounds without waiting or variation are exactly the time worked.
    #[test]
    fn work_done_is_time_worked(scenario in scenarios(), work_ns in MS / 10..MS) {
        let mut scenario = scenario;
        for instance in scenario.machines.iter_mut().flat_map(|machine| &mut machine.instances) {
            instance.workload.phases = vec![Phase::Compute { work_ns, varies_permille: 0 }];
        }
        for schedule in schedules(&scenario) {
            let outcome = simulate(&scenario, &schedule);
            let rounds: u64 = outcome.instances.iter().map(|instance| instance.thread_rounds).sum();
            let threads: u64 = outcome.instances.iter().map(|instance| instance.threads).sum();
            let worked_ns = outcome.host().working_ns;
            prop_assert!(rounds * work_ns <= worked_ns);
            prop_assert!(worked_ns <= (rounds + threads) * work_ns);
        }
    }

    #[test]
    fn relaxed_scheduling_keeps_its_bound(scenario in scenarios(), skew_max_ns in MS / 2..5 * MS) {
        let relaxed = Relaxed { slot_ns: 6 * MS, skew_max_ns, placement: Placement::FirstFit };
        let outcome = simulate(&scenario, &Schedule::Relaxed(relaxed));
        prop_assert!(outcome.skew_max_ns <= skew_max_ns, "{} > {skew_max_ns}", outcome.skew_max_ns);
        prop_assert!(outcome.decisions < 100_000, "{} decisions", outcome.decisions);
    }

    /// Waiting in the simulator is bounded as the policies state it, blocking and waking included.
    #[test]
    fn waiting_is_bounded(scenario in scenarios()) {
        let slot_ns = 6 * MS;
        for sets in [scenario.full_sets(), scenario.given_sets()] {
            let schedule = Schedule::Sets { sets, slot_ns, idle: IdleCores::Kept, placement: Placement::Nearest };
            let outcome = simulate(&scenario, &schedule);
            let bound_ns = slot_ns * scenario.tasks() as u64;
            for (task, &wait_ns) in outcome.longest_wait_ns.iter().enumerate() {
                prop_assert!(wait_ns <= bound_ns, "task {task} waited {wait_ns} of at most {bound_ns}");
            }
        }
    }
}
