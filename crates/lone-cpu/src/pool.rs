//! A fork-join pool: `run(tasks, f)` calls `f` once for every task index, on all threads, and returns when
//! every call has.
//!
//! The caller works too. Each thread has a share of tasks that follow each other, as weights do in memory, and when it
//! has claimed them all it claims from the shares of others. So a thread that the system has put aside holds up nobody:
//! a job waits only for threads that have *entered* it, and closes the door when no task is left.
//! Idle workers spin for some microseconds, which is what separates the steps of a token, and then park.
//! Nothing is allocated per job.
//!
//! The whole protocol is one word, `Gate`: which job is open, whether it still is, and how many workers are
//! inside.

#![expect(
    unsafe_code,
    reason = "a job borrows from its caller, which the compiler cannot see across threads"
)]

mod gate;

use std::any::Any;
use std::cell::UnsafeCell;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};

use gate::{Gate, News};

/// How often an idle worker looks for the next job before it parks: 10 to 40 microseconds.
const SPINS_BEFORE_PARKING: u32 = 1 << 9;

/// Most threads of a pool. Some thousands can be too many to start without a fault, and none would help.
const MOST_THREADS: usize = 256;

/// Worker threads that run one job at a time together with the thread that asks for it.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
}

struct Worker {
    thread: Thread,
    handle: Option<JoinHandle<()>>,
}

impl Pool {
    /// A pool that runs jobs on `threads` threads, the caller of [`Pool::run`] included; one thread means no
    /// workers at all.
    ///
    /// Where the system refuses a thread, the pool has as many as it got; it never has more than 256.
    pub fn new(threads: NonZeroUsize) -> Self {
        let workers = threads.get().min(MOST_THREADS) - 1;
        let shared = Arc::new(Shared::new(workers));
        let workers = (0..workers).map_while(|index| Worker::spawn(&shared, index).ok()).collect();
        Self { shared, workers }
    }

    /// How many threads a job runs on at most.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `task(0)`, …, `task(tasks - 1)`, each once, in any order and on any thread, and returns when all
    /// have returned.
    ///
    /// A call from inside a task, or while another thread has the pool, runs its tasks one after the other on
    /// its own thread.
    ///
    /// # Panics
    /// With the payload of a task that panicked; tasks not yet begun are then dropped, and the pool can be
    /// used again.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        if tasks <= 1 || self.workers.is_empty() || self.shared.busy.swap(true, Ordering::Acquire) {
            return (0..tasks).for_each(task);
        }
        self.shared.open(Job::new(tasks, &task));
        self.wake(tasks - 1);
        self.shared.work(self.workers.len());
        self.shared.close();
        let panic = self.shared.take_panic();
        self.shared.busy.store(false, Ordering::Release);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }

    /// Cuts `data` into chunks of `chunk` elements, the last maybe shorter, and calls `task(index, chunk)`
    /// for each as [`Pool::run`] does.
    ///
    /// # Panics
    /// If `chunk` is 0, and as [`Pool::run`] does.
    pub fn for_each_chunk<T: Send>(
        &self,
        data: &mut [T],
        chunk: usize,
        task: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let (len, base) = (data.len(), SharedPointer(data.as_mut_ptr()));
        self.run(len.div_ceil(chunk), |index| {
            let start = index * chunk;
            let pointer = base.get().wrapping_add(start);
            // SAFETY: `start..start + length` lies inside `data`, which this call borrows mutably until every
            // task has returned, and `run` gives each index to one call, so no two chunks overlap.
            let piece = unsafe { std::slice::from_raw_parts_mut(pointer, chunk.min(len - start)) };
            task(index, piece);
        });
    }

    /// Unparks up to `count` workers, those that spin not counted.
    fn wake(&self, count: usize) {
        let asleep = self
            .workers
            .iter()
            .zip(&self.shared.parked)
            .filter(|(_, parked)| parked.swap(false, Ordering::SeqCst));
        asleep.take(count).for_each(|(worker, _)| worker.thread.unpark());
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.gate.shut_down();
        for worker in &mut self.workers {
            worker.thread.unpark();
            if let Some(handle) = worker.handle.take() {
                handle.join().expect("workers catch the panics of tasks");
            }
        }
    }
}

impl Worker {
    fn spawn(shared: &Arc<Shared>, index: usize) -> std::io::Result<Self> {
        let shared = Arc::clone(shared);
        let name = format!("lone-cpu-{}", index + 1);
        let handle = thread::Builder::new().name(name).spawn(move || shared.serve(index))?;
        Ok(Self { thread: handle.thread().clone(), handle: Some(handle) })
    }
}

/// The base of a slice whose disjoint chunks go to different threads.
struct SharedPointer<T>(*mut T);

// SAFETY: the pointer is only used to hand each thread chunks of its own, of elements that may be sent.
unsafe impl<T: Send> Sync for SharedPointer<T> {}

impl<T> SharedPointer<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

/// What the workers of a pool and its callers have in common.
struct Shared {
    gate: Gate,
    job: UnsafeCell<Job>,
    /// For each thread the next task of its share that nobody has claimed; the caller's follows those of the workers. Shares
    /// of threads that the system refused are left to the others.
    shares: Vec<Share>,
    busy: AtomicBool,
    parked: Vec<AtomicBool>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// Alone in its cache lines, which other threads touch when they have nothing else to do.
#[repr(align(128))]
#[derive(Default)]
struct Share(AtomicUsize);

// SAFETY: `job` is the only field that is not Sync. It is written by the holder of `busy` while the gate is
// closed and empty, and read only by threads inside.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is only followed between `open` and `close`, which keep its target borrowed.
unsafe impl Send for Shared {}

impl Shared {
    fn new(workers: usize) -> Self {
        Self {
            gate: Gate::default(),
            job: UnsafeCell::new(Job::new(0, &|_| ())),
            shares: (0..=workers).map(|_| Share::default()).collect(),
            busy: AtomicBool::new(false),
            parked: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            panic: Mutex::new(None),
        }
    }

    /// Publishes a job. The caller holds `busy`.
    fn open(&self, job: Job) {
        for (thread, share) in self.shares.iter().enumerate() {
            share.0.store(self.first_task(thread, job.tasks), Ordering::Relaxed);
        }
        // SAFETY: the gate is closed and empty, for the previous job ended with `close`, and `busy` keeps
        // other callers away.
        unsafe { *self.job.get() = job };
        self.gate.open();
    }

    /// Where the share of `thread` begins, and that of the thread before it ends.
    fn first_task(&self, thread: usize, tasks: usize) -> usize {
        thread * tasks / self.shares.len()
    }

    /// Lets no more workers in and waits until those inside have left, after which the job is not referred to
    /// any more.
    fn close(&self) {
        self.gate.close();
        let mut spins = 0u32;
        while self.gate.occupied() {
            spins = spins.saturating_add(1);
            // A worker inside is running the last tasks; if it has lost its core, give it ours.
            if spins < SPINS_BEFORE_PARKING { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }

    /// Runs tasks until none is left, those of `thread`'s share first. The caller is inside the gate or opened it.
    fn work(&self, thread: usize) {
        // SAFETY: whoever is inside, or has opened the gate and not yet closed it, sees the job as published.
        let job = unsafe { &*self.job.get() };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let threads = self.shares.len();
            for share in (thread..threads).chain(0..thread) {
                let end = self.first_task(share + 1, job.tasks);
                loop {
                    let task = self.shares[share].0.fetch_add(1, Ordering::Relaxed);
                    if task >= end {
                        break;
                    }
                    job.call(task);
                }
            }
        }));
        if let Err(payload) = outcome {
            self.shares.iter().for_each(|share| share.0.store(job.tasks, Ordering::Relaxed));
            match &mut *self.panic.lock().unwrap_or_else(PoisonError::into_inner) {
                first @ None => *first = Some(payload),
                // Its destructor could panic too, and nothing may unwind before the gate is closed.
                Some(_) => std::mem::forget(payload),
            }
        }
    }

    fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The life of worker `index`.
    fn serve(&self, index: usize) {
        let mut last_job = 0;
        while let Some(job) = self.wait_for_job(index, last_job) {
            last_job = job;
            if self.gate.enter(job) {
                self.work(index);
                self.gate.leave();
            }
        }
    }

    /// The number of a job newer than `last_job`, or none when the pool is being dropped.
    fn wait_for_job(&self, index: usize, last_job: u64) -> Option<u64> {
        loop {
            for _ in 0..SPINS_BEFORE_PARKING {
                match self.gate.look(last_job) {
                    News::Nothing => std::hint::spin_loop(),
                    News::Job(job) => return Some(job),
                    News::Shutdown => return None,
                }
            }
            // Announce first, look again after: whoever opens a job looks at the flag after publishing, so
            // one of the two sees the other.
            self.parked[index].store(true, Ordering::SeqCst);
            if matches!(self.gate.look(last_job), News::Nothing) {
                thread::park();
            }
            self.parked[index].store(false, Ordering::SeqCst);
        }
    }
}

/// A closure and how often to call it, without its lifetime: valid between [`Shared::open`] and
/// [`Shared::close`].
struct Job {
    tasks: usize,
    task: *const (dyn Fn(usize) + Sync),
}

impl Job {
    fn new<'a>(tasks: usize, task: &'a (dyn Fn(usize) + Sync + 'a)) -> Self {
        let task: *const (dyn Fn(usize) + Sync + 'a) = task;
        // SAFETY: only the lifetime of the trait object changes; it is followed only while `run` keeps the
        // closure borrowed.
        let task = unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync + 'a), *const (dyn Fn(usize) + Sync)>(task)
        };
        Self { tasks, task }
    }

    fn call(&self, index: usize) {
        // SAFETY: the gate is open or we are inside it, so `run` has not returned and its closure is alive.
        let task = unsafe { &*self.task };
        task(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(threads: usize) -> Pool {
        Pool::new(NonZeroUsize::new(threads).unwrap())
    }

    fn tally(count: &AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn message(payload: &(dyn Any + Send)) -> &str {
        payload.downcast_ref::<&str>().copied().unwrap_or("not a string")
    }

    #[test]
    fn every_task_runs_exactly_once() {
        for threads in [1, 2, 3, 8] {
            let pool = pool(threads);
            for tasks in [0, 1, 2, 7, 100] {
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                pool.run(tasks, |task| {
                    counts[task].fetch_add(1, Ordering::Relaxed);
                });
                assert!(
                    counts.iter().all(|count| count.load(Ordering::Relaxed) == 1),
                    "{threads} threads, {tasks} tasks"
                );
            }
        }
    }

    #[test]
    fn what_tasks_wrote_is_seen_after_every_one_of_many_joins() {
        let pool = pool(4);
        let mut data = [0u32; 16];
        for round in 1..=20_000 {
            pool.for_each_chunk(&mut data, 3, |_, chunk| chunk.iter_mut().for_each(|x| *x += 1));
            assert!(data.iter().all(|&x| x == round), "round {round}: {data:?}");
        }
    }

    #[test]
    fn jobs_reach_workers_that_have_parked() {
        let pool = pool(2);
        for _ in 0..20 {
            while !pool.shared.parked[0].load(Ordering::SeqCst) {
                thread::yield_now();
            }
            let both = std::sync::Barrier::new(2);
            pool.run(2, |_| {
                both.wait();
            });
        }
    }

    #[test]
    fn a_pool_of_absurdly_many_threads_has_a_bounded_number() {
        assert!(pool(100_000).threads() <= MOST_THREADS);
    }

    #[test]
    fn chunks_cover_the_data_and_the_last_is_shorter() {
        let mut data = [0usize; 10];
        pool(3).for_each_chunk(&mut data, 4, |index, chunk| chunk.fill(10 * index + chunk.len()));
        assert_eq!(data, [4, 4, 4, 4, 14, 14, 14, 14, 22, 22]);
    }

    #[test]
    fn a_job_inside_a_task_runs_on_the_thread_of_the_task() {
        let pool = pool(3);
        let sum = AtomicUsize::new(0);
        pool.run(4, |outer| {
            let thread = thread::current().id();
            pool.run(5, |inner| {
                assert_eq!(thread::current().id(), thread);
                sum.fetch_add(10 * outer + inner, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), (0..4).map(|outer| 50 * outer + 10).sum::<usize>());
    }

    #[test]
    fn threads_that_share_a_pool_all_get_their_work_done() {
        let pool = pool(3);
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| pool.run(8, |_| tally(&count))));
            }
        });
        assert_eq!(count.into_inner(), 4 * 500 * 8);
    }

    #[test]
    fn a_panic_of_a_task_is_the_panic_of_the_call_and_the_pool_lives_on() {
        let pool = pool(3);
        for bad in 0..50 {
            let outcome =
                catch_unwind(AssertUnwindSafe(|| pool.run(50, |task| assert!(task != bad, "task gave up"))));
            assert_eq!(message(&*outcome.unwrap_err()), "task gave up");
            let count = AtomicUsize::new(0);
            pool.run(20, |_| tally(&count));
            assert_eq!(count.into_inner(), 20);
        }
    }

    /// A payload that cannot be dropped quietly.
    struct Grudge;

    impl Drop for Grudge {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn payloads_that_panic_when_dropped_leave_the_pool_alive() {
        let pool = pool(2);
        let both = std::sync::Barrier::new(2);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.run(2, |_| {
                both.wait();
                std::panic::panic_any(Grudge);
            });
        }));
        std::mem::forget(outcome.unwrap_err());
        let count = AtomicUsize::new(0);
        pool.run(20, |_| tally(&count));
        assert_eq!(count.into_inner(), 20);
    }

    #[test]
    fn dropping_a_pool_ends_its_threads() {
        for _ in 0..50 {
            let pool = pool(4);
            pool.run(4, |_| ());
            let shared = Arc::clone(&pool.shared);
            drop(pool);
            assert_eq!(Arc::strong_count(&shared), 1);
        }
    }
}
