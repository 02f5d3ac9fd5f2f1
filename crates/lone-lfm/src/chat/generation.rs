//! `{% generation %}` blocks, which mark an assistant's text for training and render as what they contain.
//!
//! Jinja knows them by an extension that minijinja has no place for, so the tags are rewritten before parsing:
//! `{%- generation -%}` becomes `{%- with -%}`, which is a scope of its own just as well, and whitespace control stays.

/// The template with every generation tag rewritten; text, comments, raw blocks and strings are left alone.
pub(super) fn rewrite(template: &str) -> String {
    let mut rewritten = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(start) = ["{{", "{%", "{#"].iter().filter_map(|opening| rest.find(opening)).min() {
        let (text, tag) = rest.split_at(start);
        rewritten.push_str(text);
        let end = if tag.starts_with("{#") {
            tag.find("#}").map_or(tag.len(), |end| end + 2)
        } else if let Some(length) = raw_block(tag) {
            length
        } else {
            tag_length(tag)
        };
        let (tag, after) = tag.split_at(end);
        rewritten.push_str(&rewrite_tag(tag));
        rest = after;
    }
    rewritten.push_str(rest);
    rewritten
}

/// Length of a `{{ … }}` or `{% … %}`, or of all that is left where it is never closed.
fn tag_length(tag: &str) -> usize {
    let closing = if tag.starts_with("{{") { "}}" } else { "%}" };
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in tag.char_indices().skip(2) {
        match quote {
            None if tag[at..].starts_with(closing) => return at + closing.len(),
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None => {}
            Some(_) if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(opening) if letter == opening => quote = None,
            Some(_) => {}
        }
    }
    tag.len()
}

/// Length of a whole raw block, if `tag` opens one.
fn raw_block(tag: &str) -> Option<usize> {
    if block_name(tag)? != "raw" {
        return None;
    }
    let mut end = tag_length(tag);
    while let Some(start) = tag[end..].find("{%") {
        let inner = &tag[end + start..];
        if block_name(inner) == Some("endraw") {
            return Some(end + start + tag_length(inner));
        }
        end += start + 2;
    }
    Some(tag.len())
}

/// What a `{% … %}` says, without its whitespace control.
fn block_name(tag: &str) -> Option<&str> {
    let inside = tag.strip_prefix("{%")?;
    let inside = inside[..inside.find("%}")?].trim_matches(['-', '+']);
    Some(inside.trim())
}

fn rewrite_tag(tag: &str) -> String {
    match block_name(tag) {
        Some("generation") => tag.replacen("generation", "with", 1),
        Some("endgeneration") => tag.replacen("endgeneration", "endwith", 1),
        _ => tag.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_tags_are_rewritten_with_their_whitespace_control() {
        assert_eq!(
            rewrite("a {%- generation -%} b {% endgeneration +%} c {%generation%}"),
            "a {%- with -%} b {% endwith +%} c {%with%}"
        );
    }

    #[test]
    fn text_that_only_looks_like_a_tag_is_left_alone() {
        for template in [
            "generation",
            "{{ '{% generation %}' }}",
            r#"{{ "\"{% generation %}" }}"#,
            "{# {% generation %} #}",
            "{% raw %}{% generation %}{{ '{% endraw %}",
            "{%- raw -%} {% generation %} {%- endraw -%}",
            "{% set generation = 1 %}{{ generation }}",
            "{% if x == '%} {% generation %}' %}",
            "{{ unclosed '{% generation %}",
            "{% generation",
        ] {
            assert_eq!(rewrite(template), template);
        }
    }

    #[test]
    fn what_follows_a_skipped_region_is_still_rewritten() {
        for skipped in
            ["{# ' #}", "{% raw %}'{% endraw %}", "{{ \"'\" }}", "it's", "{%- raw -%}{{{%- endraw -%}"]
        {
            assert_eq!(rewrite(&format!("{skipped}{{% generation %}}")), format!("{skipped}{{% with %}}"));
        }
    }

    proptest::proptest! {
        #[test]
        fn anything_is_rewritten_without_a_panic(template in "([{}%#'\"\\\\-]|raw|endraw|generation|é| ){0,40}") {
            rewrite(&template);
        }
    }
}
