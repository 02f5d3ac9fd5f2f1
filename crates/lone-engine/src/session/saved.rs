//! A session in a file: its tokens, its caches and the dialogue they belong to.
//!
//! ```text
//! "lone session"   12 bytes
//! version          u32, little-endian, as all numbers
//! header bytes     u64
//! header           JSON: the bundle's identity, tokens, dialogue
//! caches           fp16, the rows in use: cache by cache, head by head, row by row
//! BLAKE3           32 bytes, of all before
//! ```
//! The file may come from anybody: it can make a session that holds nonsense, and nothing worse. It is read twice, and
//! what it says is looked at when its hash has shown that it is all there.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};

use half::f16;
use lone_bundle::Provenance;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Session, SessionOptions};
use crate::{Dialogue, EngineError, Runtime};

const MAGIC: [u8; 12] = *b"lone session";
const VERSION: u32 = 1;
const HASH_BYTES: usize = blake3::OUT_LEN;
/// Far more than any conversation has.
const MOST_HEADER_BYTES: u64 = 1 << 28;

/// Why a saved session cannot be taken up.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum SavedError {
    #[error("it is not a saved session")]
    NotASession,
    #[error("it was saved in version {found} of the format, and this lone knows {VERSION}")]
    Version { found: u32 },
    #[error("it was saved with another bundle, of {model}")]
    OtherBundle { model: String },
    #[error("it was saved with another bundle of the same {model}, converted with {flags}")]
    OtherShapes { model: String, flags: String },
    #[error("it is damaged: {reason}")]
    Damaged { reason: String },
    #[error(transparent)]
    Io(io::Error),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

#[derive(Serialize, Deserialize)]
struct Header {
    /// For people; what counts is the identity.
    model: String,
    bundle: String,
    /// Of what the bundle was made, and how it was converted.
    #[serde(default)]
    source: String,
    #[serde(default)]
    flags: BTreeMap<String, Value>,
    tokens: Vec<u32>,
    dialogue: Dialogue,
}

impl Session {
    /// Writes the session, but not the places it could go back to, and `dialogue` with it.
    ///
    /// # Errors
    /// As `out` has it.
    pub fn save(&self, runtime: &Runtime, dialogue: &Dialogue, out: impl Write) -> io::Result<()> {
        let bundle = runtime.bundle();
        let header = Header {
            model: bundle.model.name.clone(),
            bundle: bundle.identity(),
            source: bundle.provenance.source_hash.clone(),
            flags: bundle.provenance.flags.clone(),
            tokens: self.tokens.clone(),
            dialogue: dialogue.clone(),
        };
        let header = serde_json::to_vec(&header).expect("plain data serializes");
        let mut out = Hashed { inner: out, hasher: blake3::Hasher::new() };
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&header)?;
        for rows in self.caches.used(self.position()) {
            out.write_all(&little_endian(rows))?;
        }
        let Hashed { mut inner, hasher } = out;
        inner.write_all(hasher.finalize().as_bytes())?;
        inner.flush()
    }
}

impl Runtime {
    /// Reads what [`Session::save`] wrote with this very bundle, whatever backend ran it.
    ///
    /// # Errors
    /// [`SavedError`]; nothing of a damaged file is taken up, or told.
    pub fn load_session(
        &self,
        options: &SessionOptions,
        mut input: impl Read + Seek,
    ) -> Result<(Session, Dialogue), SavedError> {
        check_begin(&mut input)?;
        check_hash(&mut input)?;
        let after_version = (MAGIC.len() + size_of_val(&VERSION)) as u64;
        input.seek(SeekFrom::Start(after_version)).map_err(SavedError::Io)?;
        let header = read_header(&mut input)?;
        if header.bundle != self.bundle().identity() {
            return Err(other_bundle(header, &self.bundle().provenance));
        }
        self.check_tokens(&header.tokens).map_err(EngineError::from)?;
        header.dialogue.check().map_err(damaged)?;
        let session = self.refilled(options, header.tokens, &mut input)?;
        let mut rest = Vec::new();
        input.take(HASH_BYTES as u64 + 1).read_to_end(&mut rest).map_err(SavedError::Io)?;
        if rest.len() != HASH_BYTES {
            return Err(damaged("its length does not fit its tokens"));
        }
        Ok((session, header.dialogue))
    }

    /// A session of `tokens`, its caches read from `input`.
    fn refilled(
        &self,
        options: &SessionOptions,
        tokens: Vec<u32>,
        input: &mut impl Read,
    ) -> Result<Session, SavedError> {
        let mut session = self.session(options)?;
        session.make_room(tokens.len())?;
        session.caches.refill(tokens.len(), |rows| read_rows(input, rows))?;
        session.tokens = tokens;
        session.end_turn();
        Ok(session)
    }
}

/// Refuses what is no session, or one of another version of the format.
fn check_begin(input: &mut impl Read) -> Result<(), SavedError> {
    if array(input).map_err(|_| SavedError::NotASession)? != MAGIC {
        return Err(SavedError::NotASession);
    }
    match u32::from_le_bytes(array(input)?) {
        VERSION => Ok(()),
        found => Err(SavedError::Version { found }),
    }
}

/// Refuses a file whose last bytes are not the hash of all before.
fn check_hash(input: &mut (impl Read + Seek)) -> Result<(), SavedError> {
    let hashed_bytes =
        input.seek(SeekFrom::End(-(HASH_BYTES as i64))).map_err(|_| damaged("it ends early"))?;
    let expected: [u8; HASH_BYTES] = array(input)?;
    input.rewind().map_err(SavedError::Io)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(input.take(hashed_bytes)).map_err(SavedError::Io)?;
    if hasher.finalize() == expected { Ok(()) } else { Err(damaged("its content does not match its hash")) }
}

fn read_header(input: &mut impl Read) -> Result<Header, SavedError> {
    let bytes = u64::from_le_bytes(array(input)?);
    if bytes > MOST_HEADER_BYTES {
        return Err(damaged(format_args!("it claims a header of {bytes} bytes")));
    }
    let mut header = Vec::new();
    input.take(bytes).read_to_end(&mut header).map_err(SavedError::Io)?;
    serde_json::from_slice(&header).map_err(damaged)
}

/// What to say of a session whose bundle is not the one that `here` tells of.
fn other_bundle(header: Header, here: &Provenance) -> SavedError {
    let Header { model, source, flags, .. } = header;
    let differing = flags.iter().filter(|(name, value)| here.flags.get(*name) != Some(value));
    let flags: Vec<String> = differing.map(|(name, value)| typed(name, value)).collect();
    if source == here.source_hash && !flags.is_empty() {
        SavedError::OtherShapes { model, flags: flags.join(" ") }
    } else {
        SavedError::OtherBundle { model }
    }
}

/// A flag as it is typed, or that it was not.
fn typed(name: &str, value: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Null | Value::Bool(false) => format!("without --{name}"),
        Value::Bool(true) => format!("--{name}"),
        Value::Array(list) => format!("--{name} {}", list.iter().map(text).collect::<Vec<_>>().join(",")),
        value => format!("--{name} {}", text(value)),
    }
}

fn damaged(reason: impl ToString) -> SavedError {
    SavedError::Damaged { reason: reason.to_string() }
}

/// A file that ends early is damaged; anything else is the system's word.
fn read_failed(error: io::Error) -> SavedError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged("it ends early"),
        _ => SavedError::Io(error),
    }
}

fn little_endian(rows: &[f16]) -> Vec<u8> {
    rows.iter().flat_map(|row| row.to_le_bytes()).collect()
}

fn array<const N: usize>(input: &mut impl Read) -> Result<[u8; N], SavedError> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(read_failed)?;
    Ok(bytes)
}

fn read_rows(input: &mut impl Read, rows: &mut [f16]) -> Result<(), SavedError> {
    let mut bytes = vec![0; 2 * rows.len()];
    input.read_exact(&mut bytes).map_err(read_failed)?;
    for (row, bytes) in rows.iter_mut().zip(bytes.as_chunks().0) {
        *row = f16::from_le_bytes(*bytes);
    }
    Ok(())
}

/// Hashes what is written.
struct Hashed<W> {
    inner: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.hasher.update(&buffer[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::fake::{Spec, VOCAB, reference};

    fn tokens(count: usize) -> Vec<u32> {
        (0..count as u32).map(|i| (5 * i * i + i + 2) % VOCAB as u32).collect()
    }

    fn saved(spec: &Spec, count: usize) -> (Runtime, Vec<u8>) {
        let mut runtime = spec.load();
        let mut session = runtime.session(&SessionOptions::default()).unwrap();
        if count > 0 {
            session.extend(&mut runtime, &tokens(count)).unwrap();
        }
        let mut file = Vec::new();
        session.save(&runtime, &Dialogue::new(Some("S".into())), &mut file).unwrap();
        (runtime, file)
    }

    fn refusal(runtime: &Runtime, file: &[u8]) -> String {
        match runtime.load_session(&SessionOptions::default(), Cursor::new(file)) {
            Ok(_) => panic!("it was taken"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_session_goes_on_as_if_it_had_never_been_away_and_can_come_back_to_where_it_was_saved() {
        for (ring, segment_rows) in [(true, 7), (true, 1000), (false, 7), (false, 1000)] {
            let spec = Spec { ring, segment_rows, contexts: vec![16, 40], ..Spec::default() };
            for count in [0, 1, 5, 6, 7, 30] {
                let (mut runtime, file) = saved(&spec, count);
                let (mut session, dialogue) =
                    runtime.load_session(&SessionOptions::default(), Cursor::new(&file)).unwrap();
                assert_eq!((session.tokens(), dialogue.system()), (&tokens(count)[..], Some("S")));
                for more in [[3, 1, 4], [2, 7, 1]] {
                    session.extend(&mut runtime, &more).unwrap();
                    let expected = reference(session.tokens(), spec.window);
                    assert_eq!(session.logits(), expected.last().map(Vec::as_slice), "ring {ring}, {count}");
                }
                assert_eq!(session.rewind(count), count);
            }
        }
    }

    #[test]
    fn only_rows_in_use_are_in_the_file() {
        let spec = Spec::default();
        let sizes = [10, 20].map(|count| saved(&spec, count).1.len());
        assert!(sizes[1] - sizes[0] < 10 * 16 + 40, "{sizes:?}");
    }

    #[test]
    fn a_file_of_something_else_or_of_another_version_is_refused() {
        let (runtime, file) = saved(&Spec::default(), 3);
        assert_eq!(refusal(&runtime, b""), "it is not a saved session");
        assert_eq!(refusal(&runtime, b"some other text"), "it is not a saved session");
        let mut newer = file;
        newer[12] = 2;
        assert_eq!(
            refusal(&runtime, &newer),
            "it was saved in version 2 of the format, and this lone knows 1"
        );
    }

    #[test]
    fn a_session_of_another_bundle_is_refused_by_name() {
        let (_, file) = saved(&Spec::default(), 3);
        let other = Spec { window: 5, ..Spec::default() }.load();
        assert!(refusal(&other, &file).starts_with("it was saved with another bundle, of "));
    }

    #[test]
    fn a_session_of_the_same_model_converted_otherwise_is_refused_with_the_flags() {
        let flags = |ctx: &[usize]| {
            let flags = [("ctx", json!(ctx)), ("ring", json!(false)), ("group", json!(null))];
            BTreeMap::from(flags.map(|(name, value)| (name.to_owned(), value)))
        };
        let provenance = |ctx: &[usize]| Provenance {
            lone_version: "1".into(),
            source_hash: "the same".into(),
            flags: flags(ctx),
        };
        let header = Header {
            model: "m".into(),
            bundle: "a".into(),
            source: "the same".into(),
            flags: flags(&[256, 512]),
            tokens: Vec::new(),
            dialogue: Dialogue::default(),
        };
        assert_eq!(
            other_bundle(header, &provenance(&[64])).to_string(),
            "it was saved with another bundle of the same m, converted with --ctx 256,512"
        );
        assert_eq!(typed("ring", &json!(false)), "without --ring");
        assert_eq!(typed("precision", &json!("lut4")), "--precision lut4");
    }

    #[test]
    fn every_damaged_byte_and_every_early_end_is_noticed() {
        let (runtime, file) = saved(&Spec::default(), 9);
        for at in 0..file.len() {
            refusal(&runtime, &file[..at]);
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            refusal(&runtime, &damaged);
        }
        assert_eq!(
            refusal(&runtime, &[&file[..], &[0]].concat()),
            "it is damaged: its content does not match its hash"
        );
    }

    /// `file` with a hash that fits: whoever makes a file can make that too.
    fn sealed(mut file: Vec<u8>) -> Vec<u8> {
        let hash = blake3::hash(&file);
        file.extend(hash.as_bytes());
        file
    }

    /// A file with this header, and what follows it.
    fn with_header(header: &[u8], rest: &[u8]) -> Vec<u8> {
        let length = (header.len() as u64).to_le_bytes();
        sealed([&MAGIC[..], &VERSION.to_le_bytes(), &length, header, rest].concat())
    }

    /// The header of a file that was saved, changed.
    fn edited(file: &[u8], edit: impl FnOnce(&mut Value)) -> Vec<u8> {
        let length = u64::from_le_bytes(file[16..24].try_into().unwrap()) as usize;
        let mut header = serde_json::from_slice(&file[24..24 + length]).unwrap();
        edit(&mut header);
        with_header(header.to_string().as_bytes(), &file[24 + length..file.len() - HASH_BYTES])
    }

    #[test]
    fn a_header_without_end_is_refused_before_it_is_read() {
        let (runtime, mut file) = saved(&Spec::default(), 9);
        file[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        file.truncate(file.len() - HASH_BYTES);
        assert!(refusal(&runtime, &sealed(file)).starts_with("it is damaged: it claims a header of "));
    }

    #[test]
    fn nothing_of_a_header_is_told_before_the_hash_has_shown_that_it_is_whole() {
        let (runtime, file) = saved(&Spec::default(), 3);
        let file = edited(&file, |header| {
            header["model"] = "of somebody".into();
            header["bundle"] = "another".into();
        });
        assert_eq!(refusal(&runtime, &file), "it was saved with another bundle, of of somebody");
        let mut damaged = file;
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(refusal(&runtime, &damaged), "it is damaged: its content does not match its hash");
    }

    #[test]
    fn a_whole_file_that_holds_more_or_less_than_its_tokens_need_is_refused() {
        let (runtime, file) = saved(&Spec::default(), 9);
        let content = &file[..file.len() - HASH_BYTES];
        let longer = sealed([content, &[0]].concat());
        assert_eq!(refusal(&runtime, &longer), "it is damaged: its length does not fit its tokens");
        let shorter = sealed(content[..content.len() - 40].to_vec());
        assert_eq!(refusal(&runtime, &shorter), "it is damaged: it ends early");
    }

    #[test]
    fn a_count_of_answers_that_could_not_be_counted_on_is_refused() {
        let (runtime, file) = saved(&Spec::default(), 3);
        let file = edited(&file, |header| header["dialogue"]["answers"] = u64::MAX.into());
        assert_eq!(refusal(&runtime, &file), "it is damaged: it counts 18446744073709551615 answers");
    }

    proptest! {
        #[test]
        fn any_header_is_taken_or_refused(header in "\\PC{0,40}", rest in prop::collection::vec(any::<u8>(), 0..64)) {
            let runtime = Spec::default().load();
            refusal(&runtime, &with_header(header.as_bytes(), &rest));
        }
    }
}
