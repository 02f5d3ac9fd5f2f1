//! Independent pieces of work, spread over all cores.

use std::sync::Mutex;
use std::thread;

/// As many as there are to use.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Does `work` on every item, in no particular order; returns when all is done.
pub(crate) fn on_all_cores<T: Send>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let items = Mutex::new(items);
    let next = || items.lock().expect("taking an item does not panic").next();
    thread::scope(|scope| {
        for _ in 0..processors() {
            scope.spawn(|| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}
