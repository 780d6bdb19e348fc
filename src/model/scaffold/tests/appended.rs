//! The author's text stays as it is, and what follows it is a migration.

use super::*;

/// What the file is afterwards.
fn appended(text: &str) -> Result<String, crate::Error> {
    let kind = Kind::from_toml(text).unwrap();
    let mut wanted = kind.shape_at(kind.newest()).columns;
    wanted.extend(columns("more: string comment 'new'"));
    let next = next_migration(&kind, &wanted);
    let tail = append(&kind, text, "k.toml", &next, &next.to_toml(None))?;
    let longer = format!("{text}{tail}");
    let read = Kind::from_toml(&longer).unwrap();
    assert_eq!(read.newest().get(), kind.newest().get() + 1, "{longer}");
    assert_eq!(read.shape_at(read.newest()).columns, wanted);
    Ok(tail)
}

const BLOCK: &str = "[[migrations]]  # 1\ndescription = \"adds more\"\n[migrations.add_columns]\n\
                     more = { type = \"string\", comment = \"new\" }\n";

#[test]
fn the_block_goes_to_the_end_whatever_the_end_looks_like() {
    let head = "kind = \"k\" # mine\n\n[columns]\na = \"long\"";
    for (text, before) in [
        (format!("{head}\n"), "\n"),
        (head.to_owned(), "\n\n"),
        (format!("{head}\n\n"), ""),
        (format!("{head}\n\n  "), "\n"),
        (format!("{head}\n# the end"), "\n\n"),
        (format!("\u{feff}{head}\n"), "\n"),
    ] {
        assert_eq!(appended(&text).unwrap(), format!("{before}{BLOCK}"), "{text:?}");
    }
}

#[test]
fn a_file_of_windows_keeps_its_line_ends() {
    let text = "kind = \"k\"\r\n[columns]\r\na = \"long\"\r\n";
    assert_eq!(appended(text).unwrap(), format!("\n{BLOCK}").replace('\n', "\r\n"));
    assert_eq!(appended(text.trim_end()).unwrap(), format!("\n\n{BLOCK}").replace('\n', "\r\n"));
    // The last line decides where they are mixed.
    assert_eq!(appended("kind = \"k\"\r\n[columns]\r\na = \"long\"\n").unwrap(), format!("\n{BLOCK}"));
}

#[test]
fn migrations_need_not_come_last() {
    let one = "[[migrations]]\ndescription = \"b\"\n";
    for text in [
        format!("kind = \"k\"\n{one}add_columns = {{ b = \"long\" }}\n[columns]\na = \"long\"\n"),
        format!("kind = \"k\"\n{one}[migrations.add_columns]\nb = \"long\"\n[properties]\n\"x.y\" = \"1\"\n"),
        format!("kind = \"k\"\n{one}raises_min_version = true\n[columns.a]\ntype = \"long\"\n"),
        format!("kind = \"k\"\n[columns]\na = \"long\"\n{one}[migrations.add_columns.b]\ntype = \"long\"\n"),
    ] {
        appended(&text).unwrap();
    }
}

#[test]
fn a_file_that_cant_be_appended_to_is_refused() {
    for text in [
        "kind = \"k\"\nmigrations = []\n[columns]\na = \"long\"\n",
        "kind = \"k\"\nmigrations = [{ description = \"b\", add_columns = { b = \"long\" } }]\n",
    ] {
        let error = appended(text).unwrap_err();
        assert!(error.to_string().contains("nothing was written"), "{error}");
        assert!(error.hint().unwrap().contains("[[migrations]]"), "{error:?}");
    }
}

#[test]
fn nothing_is_appended_unless_the_old_kind_is_still_there_and_the_migration_after_it() {
    let text = "kind = \"k\"\n[columns]\na = \"long\"\n[[migrations]]\ndescription = \"b\"\nadd_columns = { b = \"long\" }\n";
    let kind = Kind::from_toml(text).unwrap();
    let next = next_migration(&kind, &columns("a: long, b: long, c: long"));
    let block = next.to_toml(None);
    append(&kind, text, "k.toml", &next, &block).unwrap();
    // Another file than the kind was read from; one that does something else; a block too many.
    let other = text.replace("a = \"long\"", "a = \"string\"");
    let migration = text.replace("{ b = \"long\" }", "{ b = \"date\" }");
    let comment = text.replace("description = \"b\"", "description = \"B\"");
    for (text, block) in [
        (other.as_str(), block.clone()),
        (&migration, block.clone()),
        (&comment, block.clone()),
        (text, block.replace("c = ", "d = ")),
        (text, format!("{block}[[migrations]]\ndescription = \"d\"\nadd_columns = {{ d = \"long\" }}\n")),
        (text, "# nothing\n".to_owned()),
    ] {
        append(&kind, text, "k.toml", &next, &block).unwrap_err();
    }
}
