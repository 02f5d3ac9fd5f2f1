//! Somebody else's reading of JSON Schema.

use serde_json::Value;

/// Whether `value` fits `schema`.
///
/// # Panics
/// If `schema` is no schema.
pub fn validates(value: &Value, schema: &Value) -> bool {
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("schema.json", schema.clone()).expect("the name is one");
    let index = compiler.compile("schema.json", &mut schemas).expect("it is a schema");
    schemas.validate(value, index).is_ok()
}
