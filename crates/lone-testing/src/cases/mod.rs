//! The cases, family by family.

mod compressed;
mod elementwise;
mod layout;
mod products;
mod rows;
mod slices;

use crate::OpCase;

/// Every case of the suite.
pub fn op_cases() -> Vec<OpCase> {
    [
        elementwise::cases(),
        products::cases(),
        rows::cases(),
        layout::cases(),
        slices::cases(),
        compressed::cases(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use lone_mil::ops;

    use super::*;

    #[test]
    fn every_operation_that_can_run_has_a_case_and_every_case_a_name_of_its_own() {
        let cases = op_cases();
        let used: HashSet<_> = cases
            .iter()
            .flat_map(|case| &case.function.ops)
            .map(|op| (op.spec.name, op.spec.since))
            .collect();
        let missing: Vec<_> = ops::all()
            .filter(|row| row.can_run() && !used.contains(&(row.name, row.since)))
            .map(|row| row.name)
            .collect();
        assert!(missing.is_empty(), "no case for {missing:?}");
        let names: HashSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len());
    }
}
