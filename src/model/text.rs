//! Small helpers for text that people read.

/// `text`, or its first `most` characters and an ellipsis, on one line.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => clean(text),
        Some((at, _)) => format!("{}…", clean(&text[..at])),
    }
}

/// `text` without characters that move a terminal's cursor or forge lines: each as an escape.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// A text that ends in an XML document, such as a store's answer, with that document's `Code` and
/// `Message` in its place.
pub(crate) fn without_markup(text: &str) -> String {
    let starts = ["<?xml", "<Error", "<!DOCTYPE", "<html"];
    let Some(at) = starts.iter().filter_map(|start| text.find(start)).min() else { return text.to_owned() };
    let (before, document) = text.split_at(at);
    let element = |name: &str| {
        let (_, rest) = document.split_once(&format!("<{name}>"))?;
        let (inner, _) = rest.split_once(&format!("</{name}>"))?;
        inner.lines().next().map(str::trim).filter(|inner| !inner.is_empty())
    };
    let said: Vec<&str> = ["Code", "Message"].into_iter().filter_map(element).collect();
    format!(
        "{}{}",
        before.trim_end_matches([' ', ':', '\u{feff}']),
        match said.is_empty() {
            true => String::new(),
            false => format!(": {}", said.join(": ")),
        }
    )
}

/// `1 file`, `2 files`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// `` `a`, `b` and `c` ``.
pub(crate) fn list<T: AsRef<str>>(items: &[T]) -> String {
    let quoted: Vec<String> = items.iter().map(|i| format!("`{}`", clean(i.as_ref()))).collect();
    match quoted.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [init @ .., last] => format!("{} and {last}", init.join(", ")),
    }
}

/// A snake_case word as people write it.
pub(crate) fn spaced(word: &str) -> String {
    word.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortens_on_characters_and_not_on_bytes() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüß", 3), "äöü…");
    }

    #[test]
    fn of_an_answer_in_xml_only_code_and_message_are_kept() {
        let aws = "403 Forbidden: <?xml version=\"1.0\"?>\n<Error><Code>InvalidToken</Code><Message>It is \
                   malformed.</Message><Token-0>s3cr3t</Token-0></Error>";
        assert_eq!(without_markup(aws), "403 Forbidden: InvalidToken: It is malformed.");
        assert_eq!(without_markup("502 Bad Gateway: <html><b>s</b></html>"), "502 Bad Gateway");
        assert_eq!(without_markup("a < b, plainly"), "a < b, plainly");
    }

    #[test]
    fn counts_and_lists_read_like_sentences() {
        assert_eq!(count(1, "column"), "1 column");
        assert_eq!(count(0, "column"), "0 columns");
        assert_eq!(list(&["a", "b", "c"]), "`a`, `b` and `c`");
    }

    #[test]
    fn what_moves_the_cursor_is_escaped() {
        assert_eq!(clean("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(shorten("x\ny", 9), "x\\ny");
        assert_eq!(clean("äöü“"), "äöü“");
    }
}
