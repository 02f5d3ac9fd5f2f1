//! A Homebrew formula that builds a release from its source archive, wherever that lies.

use anyhow::{Result, bail, ensure};

/// The formula for the archive at `url`, whose SHA-256 is `sha256`. The project's page is taken from the address.
///
/// # Errors
/// If either is not what it should be: they end up in a program.
pub fn formula(url: &str, sha256: &str) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/?&=%+".contains(c);
    ensure!(url.starts_with("https://") && url.chars().all(is_plain), "not an https address: {url}");
    let is_hash = sha256.len() == 64 && sha256.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    ensure!(is_hash, "not a SHA-256 in lower-case hex: {sha256}");
    ensure!(version(url), "no version in the archive's name, where Homebrew looks for it: {url}");
    let homepage = homepage(url)?;
    let description = "Language models on the Apple Neural Engine";
    Ok(format!(
        r##"class Lone < Formula
  desc "{description}"
  homepage "{homepage}"
  url "{url}"
  sha256 "{sha256}"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on "rust" => :build
  on_macos do
    depends_on arch: :arm64
    depends_on macos: :sequoia
  end

  def install
    system "cargo", "install", *std_cargo_args(path: "crates/lone")
    generate_completions_from_executable(bin/"lone", "completions")
    system bin/"lone", "man", "man1"
    man1.install Dir["man1/*.1"]
  end

  service do
    run [opt_bin/"lone", "serve", "--model", "demo"]
    keep_alive crashed: true
    log_path var/"log/lone.log"
    error_log_path var/"log/lone.log"
  end

  test do
    ENV["LONE_CACHE"] = testpath/"cache"
    prompt = "What is the capital of France?"
    answer = shell_output("#{{bin}}/lone run --model demo --backend cpu --chat --prompt '#{{prompt}}'")
    assert_match "Paris", answer
  end
end
"##
    ))
}

/// Whether Homebrew finds a version in the last part of the address: a number after a `-`, `_` or `v`, or at its beginning.
fn version(url: &str) -> bool {
    let name = url.rsplit('/').next().unwrap_or_default();
    let mut before = '-';
    name.chars().any(|c| {
        let begins = c.is_ascii_digit() && matches!(before, '-' | '_' | 'v');
        before = c;
        begins
    })
}

/// The project that an archive belongs to: what stands before the release in its address.
fn homepage(url: &str) -> Result<&str> {
    let host = url["https://".len()..].split('/').next().unwrap_or_default();
    ensure!(host.contains(|c: char| c.is_ascii_alphanumeric()), "no host: {url}");
    let end = ["/archive/", "/releases/", "/-/archive/"].iter().filter_map(|part| url.find(part)).min();
    match end {
        Some(end) => Ok(&url[..end]),
        None => match url["https://".len()..].find('/') {
            Some(end) => Ok(&url[.."https://".len() + end]),
            None => bail!("no archive: {url}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    #[test]
    fn a_formula_names_the_archive_its_hash_and_the_page_of_its_project() {
        let url = "https://example.org/a/lone/archive/refs/tags/v1.tar.gz";
        let formula = formula(url, HASH).unwrap();
        for line in [
            format!("  url \"{url}\"\n"),
            format!("  sha256 \"{HASH}\"\n"),
            "  homepage \"https://example.org/a/lone\"\n".to_owned(),
            "    run [opt_bin/\"lone\", \"serve\", \"--model\", \"demo\"]\n".to_owned(),
        ] {
            assert!(formula.contains(&line), "{line}{formula}");
        }
        assert_eq!(homepage("https://example.org/files/lone.tar.gz").unwrap(), "https://example.org");
    }

    #[test]
    fn what_would_be_ruby_and_not_an_address_is_refused() {
        for url in ["http://example.org/a", "https://example.org/\"; system \"x", "https://example.org/#{x}"]
        {
            assert!(formula(url, HASH).is_err(), "{url}");
        }
        assert!(formula("https://example.org/a-1.tar.gz", "abc").is_err());
        assert!(formula("https://example.org", HASH).is_err());
    }

    #[test]
    fn an_address_without_a_host_or_a_version_is_refused() {
        for (url, what) in [
            ("https:///a/lone-1.tar.gz", "no host"),
            ("https://-/lone-1.tar.gz", "no host"),
            ("https://example.org/a/archive/main.tar.gz", "no version"),
            ("https://example.org/a1/lone.tar.gz", "no version"),
        ] {
            let refusal = formula(url, HASH).unwrap_err().to_string();
            assert!(refusal.starts_with(what), "{url}: {refusal}");
        }
        for name in ["lone-0.2.0.tar.gz", "v1.tar.gz", "0.2.0.tar.gz", "lone_v2.zip"] {
            formula(&format!("https://example.org/a/archive/{name}"), HASH).unwrap();
        }
    }
}
