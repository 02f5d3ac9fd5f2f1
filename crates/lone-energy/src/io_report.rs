//! macOS: the counters that IOReport shows to everybody.
//!
//! IOReport has no header. What is declared here is what other meters that need no root have found out: channels come in
//! groups, a subscription to some of them gives samples, and a sample is a dictionary of channels with running counters.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use objc2_core_foundation::{CFArray, CFDictionary, CFMutableDictionary, CFRetained, CFString, CFType, Type};

use crate::rail::{Direction, joules_in, of_channel, traffic_of_channel};
use crate::{Counters, EnergyMeter, MeterError, RailCounter};

const ENERGY: &str = "Energy Model";
/// The memory controller's counters; not every Mac shows them.
const MEMORY: &str = "AMC Stats";
const CHANNELS: &str = "IOReportChannels";

#[link(name = "IOReport", kind = "dylib")]
unsafe extern "C-unwind" {
    fn IOReportCopyChannelsInGroup(
        group: *const CFString,
        subgroup: *const CFString,
        a: u64,
        b: u64,
        c: u64,
    ) -> *mut CFDictionary;
    fn IOReportMergeChannels(into: *const CFDictionary, from: *const CFDictionary, nothing: *const CFType);
    fn IOReportCreateSubscription(
        nothing: *const c_void,
        channels: *const CFMutableDictionary,
        subscribed: *mut *mut CFMutableDictionary,
        a: u64,
        b: *const CFType,
    ) -> *mut CFType;
    fn IOReportCreateSamples(
        subscription: *const CFType,
        channels: *const CFMutableDictionary,
        nothing: *const CFType,
    ) -> *mut CFDictionary;
    fn IOReportChannelGetGroup(channel: *const CFDictionary) -> *const CFString;
    fn IOReportChannelGetChannelName(channel: *const CFDictionary) -> *const CFString;
    fn IOReportChannelGetUnitLabel(channel: *const CFDictionary) -> *const CFString;
    fn IOReportSimpleGetIntegerValue(channel: *const CFDictionary, index: i32) -> i64;
}

/// The meter.
pub struct IoReport {
    subscription: CFRetained<CFType>,
    channels: CFRetained<CFMutableDictionary>,
}

// SAFETY: neither object has ties to a thread, and readings take `&mut self`.
unsafe impl Send for IoReport {}

impl IoReport {
    /// Subscribes to the counters: to those of memory too, where the system allows it.
    ///
    /// # Errors
    /// [`MeterError::IoReport`] if the system has none.
    pub fn open() -> Result<Self, MeterError> {
        let subscription = Self::subscribe(&[ENERGY, MEMORY]).or_else(|| Self::subscribe(&[ENERGY]));
        subscription.ok_or(MeterError::IoReport("no counters of energy"))
    }

    /// Subscribes to `groups` together; those that the system does not list are left out.
    fn subscribe(groups: &[&'static str]) -> Option<Self> {
        let mut groups = groups.iter().filter_map(|name| group(name));
        let channels = groups.next()?;
        for more in groups {
            // SAFETY: two live dictionaries of channels, of which the first is ours to change.
            unsafe { IOReportMergeChannels(&raw const *channels, &raw const *more, ptr::null()) };
        }
        // SAFETY: a copy of the same type, with nothing but what is in the original.
        let channels = unsafe { CFMutableDictionary::new_copy(None, channels.count(), Some(&channels)) }?;
        let mut subscribed = ptr::null_mut();
        // SAFETY: a live dictionary of channels, and a place for the result.
        let subscription = unsafe {
            IOReportCreateSubscription(ptr::null(), &raw const *channels, &raw mut subscribed, 0, ptr::null())
        };
        // Groups that are listed but not to be had are missing in what was subscribed, which is what can be sampled.
        let (subscription, channels) = (owned(subscription), owned(subscribed));
        Some(IoReport { subscription: subscription?, channels: channels? })
    }
}

impl EnergyMeter for IoReport {
    fn name(&self) -> &'static str {
        "IOReport"
    }

    fn read(&mut self) -> Result<Counters, MeterError> {
        // SAFETY: what `open` was given for its channels.
        let sample = unsafe {
            IOReportCreateSamples(&raw const *self.subscription, &raw const *self.channels, ptr::null())
        };
        let sample = owned(sample).ok_or(MeterError::IoReport("no sample"))?;
        let key = CFString::from_static_str(CHANNELS);
        // SAFETY: the key is a string, as keys of samples are.
        let list = unsafe { sample.value((&raw const *key).cast()) }.cast::<CFArray>();
        // SAFETY: null, or an array that the sample, which outlives this reference, holds.
        let list = unsafe { list.as_ref() }.ok_or(MeterError::IoReport("a sample without channels"))?;
        let mut counters = Counters { rails: Vec::new(), neural_engine: None };
        for index in 0..list.count() {
            // SAFETY: the index is below the count.
            let channel = unsafe { list.value_at_index(index) };
            count(channel.cast(), &mut counters);
        }
        counters.rails.sort_by_key(|counter| counter.rail);
        Ok(counters)
    }
}

/// Adds what `channel`, a live channel of a sample, counts.
fn count(channel: *const CFDictionary, counters: &mut Counters) {
    // SAFETY: a live channel; the name belongs to it.
    let name = text(unsafe { IOReportChannelGetChannelName(channel) });
    // SAFETY: likewise.
    let group = text(unsafe { IOReportChannelGetGroup(channel) });
    if group == MEMORY {
        // SAFETY: a live channel with a plain counter, as all of this group.
        let bytes = || u64::try_from(unsafe { IOReportSimpleGetIntegerValue(channel, 0) }).unwrap_or(0);
        if let Some(direction) = traffic_of_channel(&name) {
            let traffic = counters.neural_engine.get_or_insert_default();
            match direction {
                Direction::Read => traffic.read_bytes += bytes(),
                Direction::Written => traffic.written_bytes += bytes(),
            }
        }
        return;
    }
    // SAFETY: likewise.
    let unit = text(unsafe { IOReportChannelGetUnitLabel(channel) });
    let (Some(rail), Some(joules_in_unit)) = (of_channel(&name), joules_in(&unit)) else { return };
    // SAFETY: a live channel with a plain counter, as all that count joules.
    let joules = unsafe { IOReportSimpleGetIntegerValue(channel, 0) } as f64 * joules_in_unit;
    match counters.rails.iter_mut().find(|counter| counter.rail == rail) {
        Some(counter) => counter.joules += joules,
        None => counters.rails.push(RailCounter { rail, joules }),
    }
}

fn group(name: &'static str) -> Option<CFRetained<CFDictionary>> {
    let name = CFString::from_static_str(name);
    // SAFETY: a live string; null and zeros ask for all subgroups.
    owned(unsafe { IOReportCopyChannelsInGroup(&raw const *name, ptr::null(), 0, 0, 0) })
}

/// What a function called "copy" or "create" returned.
fn owned<T: Type>(object: *mut T) -> Option<CFRetained<T>> {
    // SAFETY: such functions return null or an object that their caller owns.
    NonNull::new(object).map(|object| unsafe { CFRetained::from_raw(object) })
}

/// A string that its owner keeps, or nothing.
fn text(string: *const CFString) -> String {
    // SAFETY: null, or a string that lives as long as the channel it was asked of, which is longer than this call.
    unsafe { string.as_ref() }.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A virtual machine may have no counters, which is said in the right way.
    #[test]
    fn counters_keep_their_rails_and_never_go_back() {
        let mut meter = match IoReport::open() {
            Ok(meter) => meter,
            Err(error) => return assert!(matches!(error, MeterError::IoReport(_)), "{error}"),
        };
        let (before, after) = (meter.read().unwrap(), meter.read().unwrap());
        assert!(before.rails.iter().zip(&after.rails).all(|(before, after)| before.rail == after.rail));
        assert_eq!(before.rails.len(), after.rails.len());
        assert!(before.rails.iter().zip(&after.rails).all(|(before, after)| before.joules <= after.joules));
        assert_eq!(before.neural_engine.is_some(), after.neural_engine.is_some());
    }
}
