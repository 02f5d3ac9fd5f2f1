//! Multi-arrays: over an IOSurface, over Core ML's own memory, or over the caller's.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::slice;

use block2::RcBlock;
use lone_mil::{DType, TensorRef, TensorType};
use objc2::AnyThread;
use objc2::rc::Retained;
use objc2_core_foundation::{CFDictionary, CFRetained, CFType};
use objc2_core_ml::{MLFeatureValue, MLMultiArray, MLMultiArrayDataType};
use objc2_core_video::{
    CVPixelBuffer, CVPixelBufferCreate, CVPixelBufferGetBaseAddress, CVPixelBufferGetBytesPerRow,
    CVPixelBufferGetHeight, kCVPixelBufferIOSurfacePropertiesKey, kCVPixelFormatType_OneComponent16Half,
    kCVReturnSuccess,
};
use objc2_foundation::{NSArray, NSNumber};

use super::{fault_of, guarded};
use crate::storage::Storage;
use crate::{Array, Fault};

/// An array, and the feature value that predictions are given it as.
pub struct AppleArray {
    pub(super) array: Retained<MLMultiArray>,
    pub(super) value: Retained<MLFeatureValue>,
}

/// The form of a dense row-major buffer, in Core ML's terms.
pub(super) struct Dense {
    shape: Retained<NSArray<NSNumber>>,
    /// Elements.
    strides: Retained<NSArray<NSNumber>>,
    dtype: MLMultiArrayDataType,
}

impl Dense {
    pub(super) fn of(ty: &TensorType) -> Result<Self, Fault> {
        let strides = numbers(&ty.shape.strides());
        Ok(Dense { shape: numbers(&ty.shape), strides, dtype: data_type(ty.dtype)? })
    }
}

// SAFETY: a multi-array is an object without ties to a thread; it is used by one thread at a time, as its owner is.
unsafe impl Send for AppleArray {}

impl AppleArray {
    pub(super) fn new(ty: &TensorType) -> Result<Self, Fault> {
        match Storage::of(ty) {
            Storage::Surface { width, height } => match pixel_buffer(width, height) {
                Some(buffer) => Ok(Self::over(&buffer, ty)),
                // Slower, and never wrong.
                None => Self::plain(ty),
            },
            Storage::Plain => Self::plain(ty),
        }
    }

    /// An array that exists.
    pub(super) fn of(array: Retained<MLMultiArray>) -> Self {
        // SAFETY: the argument is a live object.
        let value = unsafe { MLFeatureValue::featureValueWithMultiArray(&array) };
        AppleArray { array, value }
    }

    fn over(buffer: &CVPixelBuffer, ty: &TensorType) -> Self {
        let shape = numbers(&ty.shape);
        // SAFETY: the buffer's width is the last axis and its height all others, as the initialiser asks.
        let array = unsafe { MLMultiArray::initWithPixelBuffer_shape(MLMultiArray::alloc(), buffer, &shape) };
        Self::of(array)
    }

    fn plain(ty: &TensorType) -> Result<Self, Fault> {
        let (shape, dtype) = (numbers(&ty.shape), data_type(ty.dtype)?);
        let array = MLMultiArray::alloc();
        // SAFETY: the arguments are a live array of numbers and a value of the enumeration.
        let array = unsafe { MLMultiArray::initWithShape_dataType_error(array, &shape, dtype) };
        array.map(Self::of).map_err(|error| fault_of(&error))
    }

    /// An array over `data`, which is of this form.
    ///
    /// # Safety
    /// The array must not be read when the memory of `data` is gone, and never be written.
    pub(super) unsafe fn in_place(data: &TensorRef<'_>, form: &Dense) -> Result<Self, Fault> {
        let Dense { shape, strides, dtype } = form;
        let start = address(data);
        let array = MLMultiArray::alloc();
        // SAFETY: shape and strides describe exactly the memory of `data`, which the caller keeps. No deallocator: it is not ours.
        let array = unsafe {
            MLMultiArray::initWithDataPointer_shape_dataType_strides_deallocator_error(
                array, start, shape, *dtype, strides, None,
            )
        };
        array.map(Self::of).map_err(|error| fault_of(&error))
    }

    /// How many bytes there are at `start`, of which Core ML says that they are `size`. It is not known whether that counts the ends of
    /// padded rows; a surface that begins there does.
    fn reach(&self, start: NonNull<c_void>, size: isize) -> usize {
        // SAFETY: a plain getter.
        let surface = unsafe { self.array.pixelBuffer() };
        let surface = surface.filter(|surface| CVPixelBufferGetBaseAddress(surface) == start.as_ptr());
        let bytes = surface
            .map_or(0, |surface| CVPixelBufferGetBytesPerRow(&surface) * CVPixelBufferGetHeight(&surface));
        usize::try_from(size).unwrap_or(0).max(bytes)
    }

    /// Whether the elements are of this type.
    pub(super) fn holds(&self, dtype: DType) -> bool {
        // SAFETY: a plain getter.
        let found = unsafe { self.array.dataType() };
        data_type(dtype).is_ok_and(|expected| expected == found)
    }
}

impl Array for AppleArray {
    fn read(&self, visit: &mut dyn FnMut(&[u8], &[usize])) -> Result<(), Fault> {
        guarded(|| {
            // SAFETY: a plain getter.
            let strides = unsafe { self.array.strides() };
            let strides = sizes(&strides);
            let visit = RefCell::new(visit);
            let handler = RcBlock::new(|bytes: NonNull<c_void>, size: isize| {
                let size = self.reach(bytes, size);
                // SAFETY: Core ML hands out `size` bytes at `bytes`, valid until the handler returns.
                let bytes = unsafe { slice::from_raw_parts(bytes.as_ptr().cast::<u8>(), size) };
                (visit.borrow_mut())(bytes, &strides);
            });
            // SAFETY: the handler takes what the method documents, and is called before it returns.
            unsafe { self.array.getBytesWithHandler(&handler) };
            Ok(())
        })
    }

    fn write(&mut self, visit: &mut dyn FnMut(&mut [u8], &[usize])) -> Result<(), Fault> {
        guarded(|| {
            let visit = RefCell::new(visit);
            let this = &*self;
            let handler =
                RcBlock::new(|bytes: NonNull<c_void>, size: isize, strides: NonNull<NSArray<NSNumber>>| {
                    let size = this.reach(bytes, size);
                    // SAFETY: Core ML hands out `size` bytes at `bytes`, ours to write until the handler returns.
                    let bytes = unsafe { slice::from_raw_parts_mut(bytes.as_ptr().cast::<u8>(), size) };
                    // SAFETY: an object that lives until the handler returns.
                    let strides = sizes(unsafe { strides.as_ref() });
                    (visit.borrow_mut())(bytes, &strides);
                });
            // SAFETY: the handler takes what the method documents, and is called before it returns.
            unsafe { self.array.getMutableBytesWithHandler(&handler) };
            Ok(())
        })
    }
}

/// Halves in an IOSurface; `None` if the system makes none of this size.
fn pixel_buffer(width: usize, height: usize) -> Option<CFRetained<CVPixelBuffer>> {
    let properties = CFDictionary::<CFType, CFType>::empty();
    // SAFETY: a constant of the framework, never written.
    let key = unsafe { kCVPixelBufferIOSurfacePropertiesKey };
    let attributes = CFDictionary::from_slices(&[key], &[&*properties]);
    let format = kCVPixelFormatType_OneComponent16Half;
    let mut buffer: *mut CVPixelBuffer = ptr::null_mut();
    let out = NonNull::from(&mut buffer);
    // SAFETY: the attributes are a dictionary of the documented types, `out` a place for the result.
    let status =
        unsafe { CVPixelBufferCreate(None, width, height, format, Some(attributes.as_opaque()), out) };
    let buffer = NonNull::new(buffer).filter(|_| status == kCVReturnSuccess)?;
    // SAFETY: a function called "create" returns an object that its caller owns.
    Some(unsafe { CFRetained::from_raw(buffer) })
}

/// Where the data begins.
fn address(data: &TensorRef<'_>) -> NonNull<c_void> {
    match data {
        TensorRef::F16(data) => NonNull::from(*data).cast(),
        TensorRef::F32(data) => NonNull::from(*data).cast(),
        TensorRef::I32(data) => NonNull::from(*data).cast(),
    }
}

fn data_type(dtype: DType) -> Result<MLMultiArrayDataType, Fault> {
    match dtype {
        DType::F16 => Ok(MLMultiArrayDataType::Float16),
        DType::F32 => Ok(MLMultiArrayDataType::Float32),
        DType::I32 => Ok(MLMultiArrayDataType::Int32),
        dtype => Err(Fault(format!("Core ML has no arrays of {dtype}"))),
    }
}

fn numbers(sizes: &[usize]) -> Retained<NSArray<NSNumber>> {
    let numbers: Vec<_> = sizes.iter().map(|&size| NSNumber::new_usize(size)).collect();
    NSArray::from_retained_slice(&numbers)
}

fn sizes(numbers: &NSArray<NSNumber>) -> Vec<usize> {
    numbers.iter().map(|number| number.as_usize()).collect()
}
