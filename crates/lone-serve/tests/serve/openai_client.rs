//! OpenAI's own Python client, against both small models.

use lone_testing::python::{python, tool};

use crate::host::Host;

#[test]
fn the_openai_client_gets_what_it_expects() {
    for name in ["tiny-lfm3", "tiny-lfm2"] {
        let host = Host::with(name, Default::default(), Default::default());
        let output =
            python().arg(tool("check_openai_client.py")).arg(host.url("/v1")).arg(name).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}:\n{said}");
    }
}
