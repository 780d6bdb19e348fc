//! What is said of kind files, lock files, stores and corpora.

use std::path::Path;

use serde_json::Value;

use super::{ADD_MIGRATION, CHECK, DOCTOR, FROM_TABLE, NEW};
use crate::state::seen::{GENERATE, LOCK, Seen, VALIDATE};
use crate::support::{FACTS, Ran, column, facts, kind_file, run};

pub(super) fn see(seen: &mut Seen) {
    let folder = tempfile::tempdir().unwrap();
    let project = Project(folder.path());
    project.write("delta-migrate.toml", "namespace = \"app\"\n");
    project.locks(seen);
    project.kinds(seen);
    project.corpora(seen);
    project.doctor(seen);
}

struct Project<'a>(&'a Path);

/// Waived, raised, and neither.
const ORDERS: &str = "kind = \"orders\"\n[columns]\nid = \"long\"\n\
    [[migrations]]\ndescription = \"one\"\nmin_version_waived = \"harmless\"\nenable_features = [\"appendOnly\"]\n\
    [[migrations]]\ndescription = \"two\"\nraises_min_version = true\nenable_features = [\"typeWidening\"]\n";

impl Project<'_> {
    fn write(&self, name: &str, text: &str) {
        let file = self.0.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn json(&self, args: &[&str]) -> (Ran, Value) {
        let ran = run(self.0, &[args, &["--format", "json"]].concat());
        let document = ran.json();
        (ran, document)
    }

    fn see(&self, seen: &mut Seen, section: &'static str, args: &[&str]) -> Value {
        let (_, document) = self.json(args);
        assert!(document["command"].as_str().is_some_and(|c| section.contains(c)), "{args:?}: {document}");
        seen.add(section, &document);
        document
    }

    fn locks(&self, seen: &mut Seen) {
        self.write("kinds/facts.toml", &kind_file(3));
        self.write("kinds/orders.toml", ORDERS);
        self.see(seen, VALIDATE, &["validate", "--locked"]);
        self.see(seen, LOCK, &["lock", "--check"]);
        self.see(seen, LOCK, &["lock"]);
        self.see(seen, VALIDATE, &["validate"]);
        self.write("kinds/facts.toml", &kind_file(4));
        self.see(seen, VALIDATE, &["validate", "--locked"]);
        // An edited base, an edited migration, and one that is gone.
        self.write(
            "kinds/facts.toml",
            &kind_file(2).replace("lsn: long", "lsn: date").replace("<string>", "<long>"),
        );
        self.see(seen, VALIDATE, &["validate"]);
        self.see(seen, LOCK, &["lock"]);
        self.write("kinds/facts.toml", &kind_file(3));
        self.write("kinds/orders.toml", &ORDERS.replace("raises_min_version = true\n", ""));
        self.see(seen, VALIDATE, &["validate"]);
        std::fs::remove_file(self.0.join("kinds/orders.toml")).unwrap();
        self.see(seen, VALIDATE, &["validate"]);
        let lock = std::fs::read_to_string(self.0.join("migrations.lock")).unwrap();
        self.write("migrations.lock", &format!("{lock}orders nine\n"));
        self.see(seen, VALIDATE, &["validate"]);
        std::fs::remove_file(self.0.join("migrations.lock")).unwrap();
    }

    fn kinds(&self, seen: &mut Seen) {
        self.see(seen, NEW, &["new", "customers"]);
        std::fs::remove_file(self.0.join("kinds/customers.toml")).unwrap();
        let mut table = facts();
        table.write(&self.0.join("same"));
        table.schema["fields"].as_array_mut().unwrap().push(column("more", "string"));
        table.write(&self.0.join("more"));
        self.write("kinds/facts.toml", &kind_file(0));
        self.see(seen, FROM_TABLE, &["kind", "from-table", "more"]);
        self.see(seen, FROM_TABLE, &["kind", "from-table", "more", "-o", "more.toml"]);
        for (from, options) in [("same", &[][..]), ("more", &["--dry-run"]), ("more", &[])] {
            let args = ["kind", "add-migration", "kinds/facts.toml", "--from-table", from];
            self.see(seen, ADD_MIGRATION, &[&args, options].concat());
        }
    }

    fn corpora(&self, seen: &mut Seen) {
        let raising = FACTS.split("[[migrations]]").nth(8).unwrap();
        self.write("kinds/facts.toml", &format!("{}[[migrations]]{raising}", kind_file(1)));
        self.see(seen, GENERATE, &["compat", "generate", "corpus/1.0"]);
        self.see(seen, CHECK, &["compat", "check", "corpus/1.0"]);
        self.write("corpus/1.0/rows/facts/stepwise.json", "[]");
        let found = self.see(seen, CHECK, &["compat", "check", "corpus/1.0"]);
        assert_eq!(found["corpora"][0]["findings"].as_array().unwrap().len(), 1, "{found}");
    }

    fn doctor(&self, seen: &mut Seen) {
        assert_eq!(self.see(seen, DOCTOR, &["doctor", "."])["ok"], true);
        // Where its folder can't be made, nothing can be written.
        self.write("full/_delta_migrate_doctor", "a file");
        assert_eq!(self.see(seen, DOCTOR, &["doctor", "full"])["ok"], false);
    }
}
