//! The inputs of a prediction as an object that Core ML asks for them: made once a function, its values exchanged.

use std::sync::{Mutex, PoisonError};

use objc2::rc::Retained;
use objc2::runtime::NSObjectProtocol;
use objc2::{AnyThread, DefinedClass, define_class, msg_send};
use objc2_core_ml::{MLFeatureProvider, MLFeatureValue};
use objc2_foundation::{NSObject, NSSet, NSString};

/// Names, and one value a name.
pub(super) struct Values {
    set: Retained<NSSet<NSString>>,
    names: Vec<Retained<NSString>>,
    /// Core ML may ask from a thread of its own while a prediction runs.
    values: Mutex<Vec<Option<Retained<MLFeatureValue>>>>,
}

define_class!(
    // SAFETY: NSObject asks nothing of its subclasses, and this one implements no Drop.
    #[unsafe(super(NSObject))]
    #[name = "LoneFeatures"]
    #[ivars = Values]
    pub(super) struct Features;

    // SAFETY: the protocol has no requirements beyond those of NSObject.
    unsafe impl NSObjectProtocol for Features {}

    // SAFETY: both methods have the types that the protocol declares.
    unsafe impl MLFeatureProvider for Features {
        #[unsafe(method_id(featureNames))]
        fn feature_names(&self) -> Retained<NSSet<NSString>> {
            self.ivars().set.clone()
        }

        #[unsafe(method_id(featureValueForName:))]
        fn feature_value(&self, name: &NSString) -> Option<Retained<MLFeatureValue>> {
            self.ivars().value(name)
        }
    }
);

impl Values {
    fn value(&self, name: &NSString) -> Option<Retained<MLFeatureValue>> {
        let index = self.names.iter().position(|known| &**known == name)?;
        self.values.lock().unwrap_or_else(PoisonError::into_inner)[index].clone()
    }
}

impl Features {
    /// Of these names, without values.
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Retained<Self> {
        let names: Vec<_> = names.map(NSString::from_str).collect();
        let set = NSSet::from_retained_slice(&names);
        let values = Mutex::new(vec![None; names.len()]);
        let this = Self::alloc().set_ivars(Values { set, names, values });
        // SAFETY: NSObject's initialiser, which has this signature.
        unsafe { msg_send![super(this), init] }
    }

    /// Lets name number `index` have this value, or none, from now on.
    pub(super) fn set(&self, index: usize, value: Option<Retained<MLFeatureValue>>) {
        self.ivars().values.lock().unwrap_or_else(PoisonError::into_inner)[index] = value;
    }
}
