//! Jobs of the fake model: who gets which pass, and what is remembered.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::*;
use crate::LoadOptions;
use crate::fake::{FakeBackend, Spec, bundle};

/// Longer than a small loss, so that sessions are worth keeping.
const CTX: usize = 400;

type Heard = (char, usize, News);

/// Sends all it hears to one place, and waits for leave before each token.
struct Ear {
    name: char,
    to: Sender<Heard>,
    gone_after: usize,
    tokens: usize,
}

impl Listener for Ear {
    fn hear(&mut self, index: usize, news: News) {
        self.tokens += usize::from(matches!(news, News::Event(Event::Token { .. })));
        self.to.send((self.name, index, news)).unwrap();
    }

    fn is_gone(&self) -> bool {
        self.tokens >= self.gone_after
    }
}

struct Bench {
    scheduler: Scheduler,
    to: Sender<Heard>,
    heard: Receiver<Heard>,
}

impl Bench {
    fn new(options: SchedulerOptions) -> Self {
        let spec = Spec { contexts: vec![CTX], ..Spec::default() };
        let (to, heard) = channel();
        Bench { scheduler: Scheduler::start(spec.load(), None, &options).unwrap(), to, heard }
    }

    fn ear(&self, name: char) -> Ear {
        Ear { name, to: self.to.clone(), gone_after: usize::MAX, tokens: 0 }
    }

    fn ask(&self, name: char, requests: Vec<Request>) {
        self.scheduler.submit(Job { requests, listener: Box::new(self.ear(name)) }).unwrap();
    }

    /// Asks and waits for the end.
    fn answer(&self, prompt: &[u32]) -> Ended {
        self.ask('x', vec![request(prompt, 3)]);
        ended(&self.until_ended('x'))
    }

    /// All that is heard until `name`'s first request is over.
    fn until_ended(&self, name: char) -> Vec<Heard> {
        let mut heard = Vec::new();
        loop {
            heard.push(self.heard.recv().unwrap());
            let (by, _, news) = heard.last().expect("something was heard just now");
            if *by == name && !matches!(news, News::Event(_)) {
                return heard;
            }
        }
    }

    fn session_bytes(&self) -> u64 {
        self.scheduler.load().session_bytes / self.scheduler.load().sessions as u64
    }
}

fn ended(heard: &[Heard]) -> Ended {
    match heard.last() {
        Some((_, _, News::Ended(ended))) => *ended,
        other => panic!("{other:?} is no end"),
    }
}

fn request(prompt: &[u32], max_new_tokens: usize) -> Request {
    Request { prompt: prompt.to_vec(), max_new_tokens, ..Request::default() }
}

/// Some prompt; another one for each `seed`, from the first token on.
fn prompt(seed: u32, tokens: u32) -> Vec<u32> {
    (0..tokens).map(|token| (seed + token * (seed + 2)) % 11).collect()
}

fn tokens(heard: &[Heard]) -> Vec<char> {
    let is_token = |heard: &&Heard| matches!(heard.2, News::Event(Event::Token { .. }));
    heard.iter().filter(is_token).map(|heard| heard.0).collect()
}

/// Holds the engine's thread in a listener until it is let go, so that jobs gather behind it.
struct Gate(Arc<Mutex<()>>);

impl Listener for Gate {
    fn hear(&mut self, _: usize, _: News) {
        drop(self.0.lock().unwrap());
    }

    fn is_gone(&self) -> bool {
        false
    }
}

impl Bench {
    /// Occupies a slot for one token, until the guard is dropped.
    fn close_gate<'a>(&self, gate: &'a Arc<Mutex<()>>) -> MutexGuard<'a, ()> {
        let guard = gate.lock().unwrap();
        let listener = Box::new(Gate(Arc::clone(gate)));
        self.scheduler.submit(Job { requests: vec![request(&[1, 2], 1)], listener }).unwrap();
        while self.scheduler.load().active == 0 {
            std::thread::yield_now();
        }
        guard
    }
}

#[test]
fn one_slot_answers_jobs_in_the_order_they_came() {
    let bench = Bench::new(SchedulerOptions::default());
    let gate = Arc::default();
    let guard = bench.close_gate(&gate);
    for name in ['a', 'b', 'c'] {
        bench.ask(name, vec![request(&[3, 4, 5], 2)]);
    }
    drop(guard);
    assert_eq!(tokens(&bench.until_ended('c')), ['a', 'a', 'b', 'b', 'c', 'c']);
}

#[test]
fn two_slots_take_turns_token_by_token_so_a_short_answer_is_not_held_up() {
    let bench = Bench::new(SchedulerOptions { parallel: 2, ..SchedulerOptions::default() });
    let gate = Arc::default();
    let guard = bench.close_gate(&gate);
    bench.ask('a', vec![request(&[3, 4, 5], 50)]);
    bench.ask('b', vec![request(&[6, 7, 8], 3)]);
    drop(guard);
    let heard = tokens(&bench.until_ended('b'));
    let last_three: String = heard[heard.len() - 6..].iter().collect();
    assert!(last_three == "ababab" || last_three == "bababa" || last_three.ends_with("babab"), "{heard:?}");
    assert!(heard.len() < 12, "{heard:?}");
}

#[test]
fn a_full_queue_refuses_until_there_is_room_and_the_gone_make_room() {
    let bench = Bench::new(SchedulerOptions { queue: 2, ..SchedulerOptions::default() });
    let gate = Arc::default();
    let guard = bench.close_gate(&gate);
    bench.ask('a', vec![request(&[1], 1)]);
    let gone = Ear { gone_after: 0, ..bench.ear('b') };
    bench.scheduler.submit(Job { requests: vec![request(&[1], 1)], listener: Box::new(gone) }).unwrap();
    bench.ask('c', vec![request(&[1], 1)]);
    let one_more = Job { requests: vec![request(&[1], 1)], listener: Box::new(bench.ear('d')) };
    assert_eq!(bench.scheduler.submit(one_more), Err(SubmitError::Full { waiting: 2 }));
    drop(guard);
    assert_eq!(tokens(&bench.until_ended('c')), ['a', 'c']);
}

#[test]
fn a_job_nobody_listens_to_ends_before_its_next_pass() {
    let bench = Bench::new(SchedulerOptions::default());
    let leaves = Ear { gone_after: 2, ..bench.ear('a') };
    let requests = vec![request(&[3, 4], 300), request(&[3, 4], 300)];
    bench.scheduler.submit(Job { requests, listener: Box::new(leaves) }).unwrap();
    bench.ask('b', vec![request(&[3, 4], 1)]);
    assert_eq!(tokens(&bench.until_ended('b')), ['a', 'a', 'b']);
}

#[test]
fn the_requests_of_a_job_are_answered_in_order_and_read_the_same_prompt_once() {
    let bench = Bench::new(SchedulerOptions::default());
    let prompt = prompt(3, 100);
    bench.ask('a', vec![request(&prompt, 4), request(&prompt, 4)]);
    let mut all = bench.until_ended('a');
    let first = ended(&all);
    all = bench.until_ended('a');
    assert!(all.iter().all(|(_, index, _)| *index == 1));
    assert_eq!(first.stats.reused_tokens, 0);
    assert_eq!(ended(&all).stats.reused_tokens, 100);
    assert_eq!(ended(&all).stats.prefill.passes, 0);
}

#[test]
fn alternating_askers_each_find_what_they_said_before() {
    let bench = Bench::new(SchedulerOptions::default());
    let (mut a, mut b) = (prompt(1, 150), prompt(2, 150));
    for _ in 0..2 {
        bench.answer(&a);
        bench.answer(&b);
        a.extend([1, 2]);
        b.extend([3, 4]);
    }
    let (a, b) = (bench.answer(&a).stats.reused_tokens, bench.answer(&b).stats.reused_tokens);
    assert!(a >= 150 && b >= 150, "{a} {b}");
    assert_eq!(bench.scheduler.load().sessions, 2);
}

#[test]
fn askers_that_share_a_beginning_read_it_once_and_keep_their_own_ends() {
    let bench = Bench::new(SchedulerOptions::default());
    let branch = |seed| [prompt(5, 130), prompt(seed, 120)].concat();
    assert_eq!(bench.answer(&branch(1)).stats.reused_tokens, 0);
    let shared = bench.answer(&branch(2)).stats.reused_tokens;
    assert!((100..=130).contains(&shared), "{shared}");
    for seed in [1, 2] {
        assert_eq!(bench.answer(&branch(seed)).stats.reused_tokens, 250);
    }
}

#[test]
fn what_another_session_holds_too_is_not_kept_twice() {
    let bench = Bench::new(SchedulerOptions::default());
    // Each begins in a session of its own, since what was answered before is much besides the prompt.
    for _ in 0..3 {
        bench.ask('a', vec![request(&prompt(1, 20), 100)]);
        bench.until_ended('a');
    }
    let start = std::time::Instant::now();
    while bench.scheduler.load().sessions != 1 {
        assert!(start.elapsed().as_secs() < 10, "{:?}", bench.scheduler.load());
        std::thread::yield_now();
    }
}

#[test]
fn answers_are_the_same_whatever_sessions_they_were_given_in() {
    let generous = Bench::new(SchedulerOptions::default());
    let tight = Bench::new(SchedulerOptions { cache_bytes: 0, ..SchedulerOptions::default() });
    let prompts = [prompt(1, 150), prompt(2, 9), [prompt(1, 140), prompt(2, 80)].concat(), prompt(1, 150)];
    for prompt in prompts {
        let [a, b] = [&generous, &tight].map(|bench| {
            bench.ask('x', vec![request(&prompt, 5)]);
            let news = bench.until_ended('x').into_iter().map(|heard| heard.2);
            news.filter(|news| matches!(news, News::Event(_))).collect::<Vec<_>>()
        });
        assert_eq!(a, b);
    }
    assert_eq!(tight.scheduler.load().sessions, 1);
}

#[test]
fn caches_stay_within_their_bytes_and_the_longest_unused_go_first() {
    let one = Bench::new(SchedulerOptions::default()).session_bytes();
    // Room for the caches of two sessions and some snapshots.
    let bench =
        Bench::new(SchedulerOptions { cache_bytes: 2 * one + one / 2, ..SchedulerOptions::default() });
    for seed in [1, 2, 3] {
        bench.answer(&prompt(seed, 150));
        assert!(bench.scheduler.load().session_bytes <= 2 * one + one / 2);
    }
    assert_eq!(bench.answer(&prompt(1, 150)).stats.reused_tokens, 0);
    assert_eq!(bench.answer(&prompt(3, 150)).stats.reused_tokens, 150);
}

#[test]
fn a_request_that_cannot_begin_fails_alone() {
    let bench = Bench::new(SchedulerOptions::default());
    bench.ask('a', vec![request(&[99], 1)]);
    let heard = bench.until_ended('a');
    let expected = RequestError::UnknownToken { index: 0, id: 99, vocab_size: 11 };
    assert_eq!(heard.last().unwrap().2, News::Refused(expected.to_string()));
    assert_eq!(bench.answer(&[1, 2]).reason, FinishReason::Length);
}

#[test]
fn a_panic_in_a_pass_fails_that_job_alone() {
    let bench = Bench::new(SchedulerOptions::default());
    struct Clumsy;
    impl Listener for Clumsy {
        fn hear(&mut self, _: usize, news: News) {
            assert!(!matches!(news, News::Event(_)), "as if the engine had panicked");
        }
        fn is_gone(&self) -> bool {
            false
        }
    }
    let job = Job { requests: vec![request(&[1, 2], 5)], listener: Box::new(Clumsy) };
    bench.scheduler.submit(job).unwrap();
    assert_eq!(bench.answer(&[1, 2]).reason, FinishReason::Length);
    assert_eq!(bench.scheduler.load().sessions, 1);
}

#[test]
fn nobody_waits_for_an_engine_that_is_gone() {
    struct Fatal;
    impl Listener for Fatal {
        fn hear(&mut self, _: usize, _: News) {}
        fn is_gone(&self) -> bool {
            panic!("as if taking up a job had failed badly");
        }
    }
    let bench = Bench::new(SchedulerOptions::default());
    let gate = Arc::default();
    let guard = bench.close_gate(&gate);
    bench.scheduler.submit(Job { requests: vec![request(&[1], 1)], listener: Box::new(Fatal) }).unwrap();
    let (to, heard) = channel();
    let waiting = Ear { to, ..bench.ear('a') };
    bench.scheduler.submit(Job { requests: vec![request(&[1], 1)], listener: Box::new(waiting) }).unwrap();
    drop(guard);
    assert_eq!(heard.recv_timeout(Duration::from_secs(60)), Err(RecvTimeoutError::Disconnected));
    let late = Job { requests: vec![request(&[1], 1)], listener: Box::new(bench.ear('b')) };
    assert_eq!(bench.scheduler.submit(late), Err(SubmitError::Closed));
    assert!(!bench.scheduler.is_open());
}

#[test]
fn a_closed_scheduler_finishes_what_it_took_and_takes_no_more() {
    let bench = Bench::new(SchedulerOptions::default());
    bench.ask('a', vec![request(&[1, 2], 20)]);
    bench.ask('b', vec![request(&[1, 2], 20)]);
    bench.scheduler.close();
    assert!(!bench.scheduler.is_open());
    let late = Job { requests: vec![request(&[1], 1)], listener: Box::new(bench.ear('c')) };
    assert_eq!(bench.scheduler.submit(late), Err(SubmitError::Closed));
    assert_eq!(ended(&bench.until_ended('b')).reason, FinishReason::Length);
}

#[test]
fn answers_are_the_same_where_tokens_are_guessed() {
    let guessing = Proposers::new(|| Box::new(crate::NgramSimple::new(3, 4)));
    let guessed = Bench::new(SchedulerOptions { proposers: Some(guessing), ..SchedulerOptions::default() });
    let plain = Bench::new(SchedulerOptions::default());
    let mut drafted = 0;
    for prompt in [prompt(1, 60), prompt(2, 60), [prompt(1, 60), prompt(3, 9)].concat()] {
        let [a, b] = [&guessed, &plain].map(|bench| {
            bench.ask('x', vec![request(&prompt, 40)]);
            let heard = bench.until_ended('x');
            drafted += ended(&heard).stats.speculated.drafted;
            let news = heard.into_iter().map(|heard| heard.2);
            news.filter(|news| matches!(news, News::Event(_))).collect::<Vec<_>>()
        });
        assert_eq!(a, b);
    }
    assert!(drafted > 0);
}

#[test]
fn sessions_are_allocated_at_the_start_one_a_slot() {
    let options = SchedulerOptions { parallel: 3, cache_bytes: 0, ..SchedulerOptions::default() };
    let spec = Spec { contexts: vec![CTX], ..Spec::default() };
    let pool = {
        let dir = spec.write();
        let runtime =
            Runtime::load(dir.path(), &FakeBackend::new(bundle(&spec)), &LoadOptions::default()).unwrap();
        SessionPool::new(&runtime, &options, options.parallel).unwrap()
    };
    assert_eq!(pool.len(), 3);
}
