//! Walks of real folders: links, names, faults.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

/// A temporary folder with tables in it, and its real path.
fn lake(tables: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for table in tables {
        make_table(&root.join(table));
    }
    (folder, root)
}

fn make_table(folder: &Path) {
    fs::create_dir_all(folder.join("_delta_log")).unwrap();
    fs::write(folder.join(COMMIT), "x").unwrap();
}

fn walk_of(root: &Path) -> Walk {
    Walk::new(Arc::new(Stores::new(4)), root.to_str().unwrap(), BTreeMap::new()).unwrap()
}

/// Locations below a root.
fn below(root: &Path, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| root.join(name).to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn real_folders_are_walked_like_any_others() {
    let (_folder, root) = lake(&["a", "a/inner", "b/c/d", "_h/t", ".h", "x=1/t"]);
    fs::create_dir_all(root.join("empty/_delta_log/_sidecars")).unwrap();
    fs::write(root.join("file"), "x").unwrap();
    fs::create_dir(root.join("odd")).unwrap();
    fs::write(root.join("odd/_delta_log"), "no folder").unwrap();
    assert_eq!(found(&walk_of(&root)).await, below(&root, &["a", "b/c/d", "x=1/t"]));
    assert_eq!(found(&walk_of(&root.join("a"))).await, below(&root, &["a"]));
    let some = walk_of(&root).include(["b/**", "a"]).unwrap().exclude(["**/d"]).unwrap();
    assert_eq!(found(&some).await, below(&root, &["a"]));
}

#[tokio::test]
async fn names_that_are_hard_to_write_open_as_that_very_table() {
    let names = ["#", "%20", "100%", "a b", "a?b", "back\\slash", "d=1", "x:/y", "ü"];
    let (_folder, root) = lake(&names);
    let walk = walk_of(&root);
    let tables = found(&walk).await;
    assert_eq!(tables, below(&root, &names));
    for uri in tables {
        let location = Stores::new(4).location(&uri, &BTreeMap::new()).unwrap();
        assert_eq!(location.uri(), uri);
        assert_eq!(location.store().list(None).count().await, 1, "{uri}");
    }
}

#[tokio::test]
async fn a_root_that_is_no_folder_is_said_so() {
    let (_folder, root) = lake(&[]);
    fs::write(root.join("file"), "x").unwrap();
    for (name, why) in [("gone", "does not exist"), ("file", "is a file, not a folder")] {
        let at = root.join(name);
        let mut items = walk_of(&at).tables().collect::<Vec<_>>().await;
        let error = items.remove(0).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Usage);
        assert_eq!(error.message(), format!("the root `{}` {why}", at.display()));
        assert!(error.hint().is_some() && items.is_empty());
    }
    assert_eq!(found(&walk_of(&root)).await, Vec::<String>::new());
}

#[cfg(unix)]
mod unix {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[tokio::test]
    async fn circles_are_harmless() {
        let (_folder, root) = lake(&["a/t", "b/t"]);
        symlink(&root, root.join("a/up")).unwrap();
        symlink(".", root.join("b/self")).unwrap();
        symlink(root.join("a"), root.join("b/a")).unwrap();
        assert_eq!(found(&walk_of(&root)).await, below(&root, &["a/t", "b/t"]));
        // From a root that is a link itself, too.
        symlink(&root, root.join("a/again")).unwrap();
        let by_link = root.join("a/again");
        assert_eq!(found(&walk_of(&by_link)).await, below(&by_link, &["a/t", "b/t"]));
    }

    #[tokio::test]
    async fn a_table_that_several_links_lead_to_is_given_once_and_always_by_the_same_name() {
        let (_outside, away) = lake(&["far/t", "other"]);
        let (_folder, root) = lake(&["z/own", "y/deep/t", "_kept/t"]);
        for (link, to) in [
            ("z/2", away.join("far")),
            ("a/1", away.join("far/t")),
            ("b", away.clone()),
            ("a0", root.join("y/deep")),
        ] {
            fs::create_dir_all(root.join(link).parent().unwrap()).unwrap();
            symlink(to, root.join(link)).unwrap();
        }
        symlink(root.join("_kept/t"), root.join("shown")).unwrap();
        for _ in 0..20 {
            let expected = below(&root, &["a/1", "b/other", "shown", "y/deep/t", "z/own"]);
            assert_eq!(found(&walk_of(&root)).await, expected);
        }
    }

    #[tokio::test]
    async fn a_link_to_nowhere_is_one_error() {
        let (_folder, root) = lake(&["a/t"]);
        symlink("gone", root.join("a/nowhere")).unwrap();
        symlink("own", root.join("own")).unwrap();
        symlink("gone", root.join(".hidden")).unwrap();
        symlink(root.join("a/t").join(COMMIT), root.join("file")).unwrap();
        let (found, errors) = all(&walk_of(&root)).await;
        assert_eq!(found, below(&root, &["a/t"]));
        let [nowhere, own] = ["a/nowhere", "own"]
            .map(|l| format!("storage: the link `{}` can't be followed", root.join(l).display()));
        assert_eq!(errors, [nowhere, own]);
        let without = walk_of(&root).exclude(["**/nowhere", "own"]).unwrap();
        assert!(all(&without).await.1.is_empty());
    }

    #[tokio::test]
    async fn a_folder_that_may_not_be_read_is_one_error() {
        let (_folder, root) = lake(&["a/t", "b/t"]);
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o000)).unwrap();
        let is_superuser = fs::read_dir(root.join("a")).is_ok();
        let (found, errors) = all(&walk_of(&root)).await;
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
        // Nothing is forbidden to the superuser, who runs tests in containers.
        if !is_superuser {
            assert_eq!(found, below(&root, &["b/t"]));
            let expected = format!("storage: the folder `{}` can't be listed", root.join("a").display());
            assert_eq!(errors, [expected]);
        }
    }

    #[tokio::test]
    async fn a_name_that_no_location_can_have_is_one_error() {
        let (_folder, root) = lake(&["t", "~", "new\nline"]);
        make_table(&root.join(std::ffi::OsStr::from_bytes(b"no\xffunicode")));
        let (found, errors) = all(&walk_of(&root)).await;
        assert_eq!(found, below(&root, &["t"]));
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(errors.iter().all(|e| e.starts_with("usage: the name of the folder") && !e.contains('\n')));
    }
}
