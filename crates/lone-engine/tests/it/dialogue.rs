//! Conversations of the two small trained models: what a turn costs, and that saving one changes nothing.

use std::io::Cursor;
use std::sync::atomic::AtomicBool;

use lone_convert::ConvertOptions;
use lone_engine::{Dialogue, Generation, Request, Runtime, Session, SessionOptions};
use lone_lfm::{ChatTemplate, SpecialTokens, Tokenizer};

use crate::support::{MODELS, load, model, session};

const QUESTIONS: [&str; 3] =
    ["What is the capital of France?", "Count from 3 to 5.", "What is the capital of Japan?"];

/// A model, and one conversation with it.
struct Talk {
    runtime: Runtime,
    session: Session,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    dialogue: Dialogue,
}

impl Talk {
    fn new(name: &str) -> Self {
        let options = ConvertOptions { ctx: vec![256], prefill: vec![16], ..ConvertOptions::default() };
        let runtime = load(&model(name), &options);
        Talk {
            session: session(&runtime),
            tokenizer: Tokenizer::open(&model(name)).unwrap(),
            template: ChatTemplate::open(&model(name)).unwrap(),
            dialogue: Dialogue::new(Some("Be terse.".into())),
            runtime,
        }
    }

    /// The answer, what the prompt added to the conversation, and what its prefill ran.
    fn say(&mut self, user: &str) -> (Vec<u32>, usize, usize) {
        let asked = self.dialogue.ask(&self.template, &self.tokenizer, user.into()).unwrap();
        let stop_tokens = self.runtime.facts().eos_token_ids.clone();
        let (prompt, stops) = (asked.tokens().to_vec(), stop_tokens.clone());
        let request = Request { prompt, max_new_tokens: 40, stop_tokens, ..Request::default() };
        let mut generation = Generation::begin(&self.runtime, &mut self.session, None, request).unwrap();
        let stopped = AtomicBool::new(false);
        generation.run(&mut self.runtime, &mut self.session, &stopped, &mut |_| ()).unwrap();
        let added = asked.new_tokens();
        self.dialogue.record(asked, &self.tokenizer, generation.token_ids(), &stops);
        (generation.token_ids().to_vec(), added, generation.stats().prefill.tokens)
    }

    fn saved(&self) -> Vec<u8> {
        let mut file = Vec::new();
        self.session.save(&self.runtime, &self.dialogue, &mut file).unwrap();
        file
    }

    fn load(&mut self, file: &[u8]) {
        let loaded = self.runtime.load_session(&SessionOptions::default(), Cursor::new(file)).unwrap();
        (self.session, self.dialogue) = loaded;
    }
}

#[test]
fn a_turn_prefills_only_the_tokens_it_adds() {
    for name in MODELS {
        let mut talk = Talk::new(name);
        for question in QUESTIONS {
            let before = talk.session.position();
            let (answer, added, prefilled) = talk.say(question);
            assert_eq!(prefilled, added, "{name}: {question}");
            // The token that ends the turn is the template's to add.
            assert_eq!(talk.session.position(), before + added + answer.len() - 1);
        }
        let whole = talk.session.position();
        assert!(whole > 64, "{whole}");
    }
}

#[test]
fn a_question_taken_back_leaves_the_conversation_before_it_where_it_was() {
    let mut talk = Talk::new("tiny-lfm3");
    talk.say(QUESTIONS[0]);
    let (_, _, cost) = talk.say(QUESTIONS[1]);
    let (second, ..) = talk.say(QUESTIONS[2]);
    assert_eq!(talk.dialogue.undo().as_deref(), Some(QUESTIONS[2]));
    let again = talk.say(QUESTIONS[2]);
    assert_eq!((again.0, again.2), (second, 0), "the same prompt is still there, with its logits");
    talk.dialogue.undo();
    talk.dialogue.undo();
    let (.., prefilled) = talk.say("Count from 3 to 6.");
    assert_eq!(prefilled, cost, "as it cost the first time");
    assert_eq!((talk.dialogue.turns(), talk.dialogue.answers()), (2, 5));
}

#[test]
fn a_template_that_rewrites_earlier_turns_sends_the_session_back_to_them() {
    let mut talk = Talk::new("tiny-lfm3");
    let text = std::fs::read_to_string(model("tiny-lfm3").join("chat_template.jinja")).unwrap();
    let rewriting = text.replace(
        "{{- message.content or \"\" -}}<|im_end|>{%- endgeneration",
        "{{- message.content | upper -}}<|im_end|>{%- endgeneration",
    );
    assert_ne!(rewriting, text);
    let special_tokens = SpecialTokens::open(&model("tiny-lfm3")).unwrap();
    talk.template = ChatTemplate::parse(&rewriting, special_tokens).unwrap();
    let (first, ..) = talk.say(QUESTIONS[0]);
    let end_of_prompt = talk.session.position() + 1 - first.len();
    let asked = talk.dialogue.ask(&talk.template, &talk.tokenizer, QUESTIONS[1].into()).unwrap();
    assert_eq!(asked.tokens().len() - asked.new_tokens(), end_of_prompt, "the answer is tokenized anew");
    let text = talk.tokenizer.decode(asked.tokens(), lone_lfm::SpecialText::Keep);
    assert!(text.contains("THE CAPITAL OF FRANCE IS PARIS."), "{text}");
    let (_, added, prefilled) = talk.say(QUESTIONS[1]);
    assert_eq!(prefilled, added);
}

#[test]
fn another_system_message_starts_over_and_keeps_what_was_said() {
    let mut talk = Talk::new("tiny-lfm2");
    talk.say(QUESTIONS[0]);
    talk.dialogue.set_system(None);
    let asked = talk.dialogue.ask(&talk.template, &talk.tokenizer, QUESTIONS[1].into()).unwrap();
    assert_eq!(asked.new_tokens(), asked.tokens().len());
    let text = talk.tokenizer.decode(asked.tokens(), lone_lfm::SpecialText::Keep);
    assert!(text.contains("France") && !text.contains("terse"), "{text}");
}

#[test]
fn a_conversation_saved_and_loaded_goes_on_bit_for_bit() {
    for name in MODELS {
        let mut talk = Talk::new(name);
        talk.say(QUESTIONS[0]);
        talk.say(QUESTIONS[1]);
        let file = talk.saved();
        let (answer, added, _) = talk.say(QUESTIONS[2]);
        let logits = talk.session.logits().unwrap().to_vec();
        let mut later = Talk::new(name);
        later.load(&file);
        assert_eq!(later.say(QUESTIONS[2]), (answer, added, added), "{name}");
        assert_eq!(later.session.logits(), Some(&logits[..]), "{name}");
        assert_eq!(later.dialogue, talk.dialogue, "{name}");
    }
}
