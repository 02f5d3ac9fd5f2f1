//! What becomes of the values of a function, as far as their ranges are concerned.

use lone_mil::{Arg, Function, Op, ValueId};

/// Operations that a matrix unit does.
const PRODUCTS: [&str; 3] = ["conv", "linear", "matmul"];

/// Uses of every value, by its index.
pub(super) struct Uses {
    in_product: Vec<bool>,
    only_divides: Vec<bool>,
    only_weighs: Vec<bool>,
}

impl Uses {
    pub(super) fn of(function: &Function) -> Self {
        let none = vec![false; function.values.len()];
        let (only_divides, only_weighs) = (none.clone(), none.clone());
        let mut uses = Uses { in_product: none, only_divides, only_weighs };
        for op in &function.ops {
            op.reads().for_each(|id| {
                uses.only_divides[id.index()] = true;
                uses.only_weighs[id.index()] = true;
            });
            if is_product(op) {
                op.reads().chain(&op.outputs).for_each(|id| uses.in_product[id.index()] = true);
            }
        }
        for op in function.ops.iter().filter(|op| op.spec.name != "softmax") {
            op.reads().for_each(|id| uses.only_weighs[id.index()] = false);
        }
        for id in &function.outputs {
            uses.only_divides[id.index()] = false;
            uses.only_weighs[id.index()] = false;
        }
        // Backwards, so that what becomes of a sum is known before its terms are looked at.
        for op in function.ops.iter().rev() {
            let divides = |id: &ValueId| match op.spec.name {
                "real_div" => op.args[0] != Some(Arg::Value(*id)),
                "add" => uses.only_divides[op.outputs[0].index()],
                _ => false,
            };
            let otherwise: Vec<ValueId> = op.reads().filter(|id| !divides(id)).copied().collect();
            otherwise.iter().for_each(|id| uses.only_divides[id.index()] = false);
        }
        uses
    }

    /// Whether a matrix unit makes or reads the value.
    pub(super) fn in_product(&self, id: ValueId) -> bool {
        self.in_product[id.index()]
    }

    /// Whether nothing is made of the value but weights, by a softmax: however far below zero an element is, its weight is
    /// zero. Masked scores are so.
    pub(super) fn only_weighs(&self, id: ValueId) -> bool {
        self.only_weighs[id.index()]
    }

    /// Whether the value, made by `op`, may be infinite: an exponential, perhaps with something added, of which nothing
    /// is made but a quotient that then is zero. Gates are written so.
    pub(super) fn may_be_infinite(&self, id: ValueId, op: &Op) -> bool {
        matches!(op.spec.name, "exp" | "add") && self.only_divides[id.index()]
    }
}

pub(super) fn is_product(op: &Op) -> bool {
    PRODUCTS.contains(&op.spec.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the values that `is` holds for.
    fn names(body: &str, is: impl Fn(&Uses, ValueId, &Op) -> bool) -> Vec<String> {
        let text = format!("func f<CoreML8>(x: fp16(1,4,2,2)) -> (y) {{\n{body}\n}}");
        let function = lone_mil::text::parse_function(&text).unwrap();
        let uses = Uses::of(&function);
        let computed = function.ops.iter().filter(|op| op.spec.name != "const");
        let values = computed.flat_map(|op| op.outputs.iter().map(move |&id| (id, op)));
        let found = values.filter(|&(id, op)| is(&uses, id, op));
        found.map(|(id, _)| function.value(id).name.clone()).collect()
    }

    const GATE: &str = "
        k: fp16() = const(val = fp16() 1)
        e: fp16(1,4,2,2) = exp(x = x)
        d: fp16(1,4,2,2) = add(x = e, y = k)
        y: fp16(1,4,2,2) = real_div(x = x, y = d)";

    #[test]
    fn an_exponential_that_only_divides_may_be_infinite() {
        let infinite = |body: &str| names(body, Uses::may_be_infinite);
        assert_eq!(infinite(GATE), ["e", "d"]);
        assert_eq!(infinite(&GATE.replace("x = x, y = d", "x = d, y = d")), Vec::<String>::new());
        assert_eq!(infinite(&GATE.replace("x = x, y = d", "x = e, y = d")), ["d"]);
        assert_eq!(
            infinite(&GATE.replace("y: ", "z: ").replace("e: ", "y: ").replace("x = e", "x = y")),
            ["d"]
        );
    }

    #[test]
    fn scores_that_only_a_softmax_reads_only_weigh() {
        let body = "
            axis: int32() = const(val = int32() 1)
            a: fp16(1,4,2,2) = exp(x = x)
            b: fp16(1,4,2,2) = exp(x = a)
            w: fp16(1,4,2,2) = softmax(x = b, axis = axis)
            y: fp16(1,4,2,2) = add(x = a, y = w)";
        assert_eq!(names(body, |uses, id, _| uses.only_weighs(id)), ["b"]);
    }

    #[test]
    fn a_matrix_unit_sees_what_products_read_and_make() {
        let body = "
            no: bool() = const(val = bool() 0)
            a: fp16(1,4,2,2) = exp(x = x)
            b: fp16(1,4,2,2) = matmul(x = a, y = a, transpose_x = no, transpose_y = no)
            y: fp16(1,4,2,2) = exp(x = b)";
        assert_eq!(names(body, |uses, id, _| uses.in_product(id)), ["a", "b"]);
    }
}
