use super::*;

const UUID: &str = "016ae953-37a9-438e-8683-9a9a4a79a395";

#[test]
fn recognises_the_files_of_a_log_exactly() {
    let v = "00000000000000000007";
    let part = |part, of| Some(LogFile::Part { version: 7, part, of });
    let cases = [
        (format!("{v}.json"), Some(LogFile::Commit(7))),
        (format!("{v}.checkpoint.parquet"), Some(LogFile::Classic(7))),
        (format!("{v}.checkpoint.0000000001.0000000003.parquet"), part(1, 3)),
        (format!("{v}.checkpoint.0000000003.0000000003.parquet"), part(3, 3)),
        (format!("{v}.checkpoint.{UUID}.parquet"), Some(LogFile::Uuid(7, Format::Parquet))),
        (format!("{v}.checkpoint.{UUID}.json"), Some(LogFile::Uuid(7, Format::Json))),
        (format!("{v}.crc"), Some(LogFile::Checksum(7))),
    ];
    for (name, wanted) in cases {
        assert_eq!(classify(&name), wanted, "{name}");
    }
    let others = [
        "0000000000000000007.json".to_owned(),
        "000000000000000000007.json".to_owned(),
        "0000000000000000000a.json".to_owned(),
        "+0000000000000000007.json".to_owned(),
        // Beyond Delta's signed 64-bit versions.
        "09223372036854775808.json".to_owned(),
        "99999999999999999999.json".to_owned(),
        v.to_owned(),
        format!("{v}.JSON"),
        format!("{v}.json#1"),
        format!("{v}.json.tmp"),
        format!(".{v}.json.crc"),
        format!("{v}.00000000000000000009.compacted.json"),
        format!("{v}.checkpoint.json"),
        format!("{v}.checkpoint.0000000000.0000000003.parquet"),
        format!("{v}.checkpoint.0000000004.0000000003.parquet"),
        format!("{v}.checkpoint.1.3.parquet"),
        format!("{v}.checkpoint.not-a-uuid.parquet"),
        format!("{v}.checkpoint.{}.parquet", UUID.replace('-', "")),
        format!("{v}.checkpoint.{UUID}.parquet.tmp"),
        "_last_checkpoint".to_owned(),
    ];
    for name in others {
        assert_eq!(classify(&name), None, "{name}");
    }
}

fn listing(names: &[&str]) -> Listing {
    let mut collected = Collected::default();
    for name in names {
        collected.add(ObjectMeta {
            location: Path::parse(format!("{LOG}/{name}")).unwrap(),
            last_modified: chrono::DateTime::UNIX_EPOCH,
            size: 1,
            e_tag: None,
            version: None,
        });
    }
    collected.finish()
}

/// Short names for long ones: `3` a commit, `3c` a checkpoint, `3p1/2` a part of one.
fn short(names: &str) -> Listing {
    let long = |name: &str| {
        let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
        let (version, kind) = name.split_at(digits);
        let version: u64 = version.parse().unwrap();
        match kind.chars().next() {
            None => format!("{version:020}.json"),
            Some('c') => format!("{version:020}.checkpoint.parquet"),
            Some('u') => format!("{version:020}.checkpoint.{UUID}.parquet"),
            _ => {
                let (part, of) = kind[1..].split_once('/').unwrap();
                let (part, of): (u64, u64) = (part.parse().unwrap(), of.parse().unwrap());
                format!("{version:020}.checkpoint.{part:010}.{of:010}.parquet")
            }
        }
    };
    let names: Vec<String> = names.split_whitespace().map(long).collect();
    listing(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// `10:12,11` is the base of checkpoint 10 with two commits to read; `!3` a gap.
fn bases(listing: &Listing) -> String {
    let base = |base: Result<Base<'_>, u64>| match base {
        Err(missing) => format!("!{missing}"),
        Ok(base) => {
            let from = base.checkpoint.map_or("-".to_owned(), |c| c.version.to_string());
            let commits: Vec<String> = base.commits.iter().map(ToString::to_string).collect();
            format!("{from}:{}", commits.join(","))
        }
    };
    listing.bases().map(base).collect::<Vec<_>>().join(" ")
}

#[test]
fn starts_at_the_newest_complete_checkpoint_and_knows_the_way_back() {
    let cases = [
        ("0 1 2", "-:2,1,0"),
        ("2 0 1", "-:2,1,0"),
        ("0 1 2 2c 3", "2:3 -:2,1,0"),
        ("0 1 2 3 4 1c 3c", "3:4 1:3,2 -:1,0"),
        // Old commits are cleaned up, and nobody needs them.
        ("4 5 4c", "4:5 !0"),
        ("4c", "4:"),
        ("3 4c", "4: !0"),
        ("9 10 11 12 9p1/2 9p2/2 10p1/2 11c", "11:12 9:11,10 !0"),
        ("0 1 2p1/2", "-:1,0"),
        ("0 1 1c 1u 2", "1:2 1: -:1,0"),
        ("1 2", "!0"),
        ("0 1 3", "!2"),
        ("2c 4 5", "!3"),
        // Up to the newer checkpoint all commits must be there.
        ("0 1 2 1c 4c 5", "4:5 !3"),
        ("", ""),
    ];
    for (names, wanted) in cases {
        assert_eq!(bases(&short(names)), wanted, "{names}");
    }
}

#[test]
fn the_tip_is_the_newest_commit_unless_a_checkpoint_is_newer() {
    let tip = |names: &str| short(names).tip().map(|(v, m)| (v, m.location.filename().unwrap().len()));
    let (commit, checkpoint) =
        ("00000000000000000001.json".len(), "00000000000000000001.checkpoint.parquet".len());
    assert_eq!(tip("0 1 2"), Some((2, commit)));
    assert_eq!(tip("0 1 2 2c"), Some((2, commit)));
    assert_eq!(tip("0 1 3c"), Some((3, checkpoint)));
    assert_eq!(tip("3c 7p1/2"), Some((3, checkpoint)));
    assert_eq!(tip(""), None);
}

#[test]
fn sub_folders_staged_and_unknown_files_are_told_apart() {
    let log = listing(&[
        "00000000000000000000.json#1",
        ".00000000000000000000.json.tmp",
        "_tmp_path_1",
        "_commit_5.json.tmp",
        "_staged_commits/00000000000000000001.json",
        "_sidecars/a.parquet",
        "00000000000000000000.crc",
        "_last_checkpoint",
    ]);
    assert!(log.tip().is_none());
    assert_eq!((log.staged, log.others), (4, 4));
}
