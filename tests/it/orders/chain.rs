//! Kinds with chains that follow from a seed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use delta_migrate::{Kind, Migrator, Namespace, SchemaVersion};

use super::shape::{Column, Shape, Type, column, list, map, plain};
use crate::support::random::Random;

pub(super) const KIND: &str = "facts";

/// A kind, and what its releases know.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) kind: Kind,
    pub(super) toml: String,
    /// By version, from 0.
    pub(super) shapes: Vec<Shape>,
    /// What the chain asks for at a version; 0 where it asks for nothing.
    pub(super) floors: Vec<u32>,
}

impl Chain {
    pub(super) fn new(random: &mut Random) -> Self {
        let newest = random.between(3, 6);
        let mut shape = base(random.one_in(3));
        let mut toml = base_text(&shape);
        let raising = match random.below(3) {
            0 => Vec::new(),
            1 => vec![random.between(2, newest - 1)],
            _ => vec![random.between(2, newest), random.between(1, newest)],
        };
        let (mut shapes, mut floors) = (vec![shape.clone()], vec![0]);
        for version in 1..=newest {
            let mut steps = Steps::default();
            for _ in 0..random.between(1, 3) {
                steps.grow(version, &mut shape, &shapes[version - 1], random);
            }
            let raises = raising.contains(&version);
            toml.push_str(&steps.text(version, raises));
            shapes.push(shape.clone());
            floors.push(if raises { u32::try_from(version).unwrap() } else { floors[version - 1] });
        }
        let kind = Kind::from_toml(&toml).unwrap_or_else(|e| panic!("{e}\n{toml}"));
        Self { kind, toml, shapes, floors }
    }

    pub(super) fn newest(&self) -> usize {
        self.shapes.len() - 1
    }

    /// The release that knows `known` migrations.
    pub(super) fn release(&self, known: usize) -> Migrator {
        let kind = self.kind.clone().cut_at(SchemaVersion::new(u32::try_from(known).unwrap()));
        let builder = Migrator::builder(Namespace::new("app").unwrap()).kind(kind);
        builder.release(format!("sink 1.{known}")).build().unwrap()
    }
}

fn base(is_partitioned: bool) -> Shape {
    let mut columns = vec![
        Column { is_nullable: false, ..column("id", plain("long")) },
        Column { is_nullable: false, ..column("code", plain("string")) },
        column("payload", Type::Struct(vec![column("lsn", plain("long"))])),
        column("items", list(Type::Struct(vec![column("a", plain("string"))]))),
        column("tags", map(Type::Struct(vec![column("by", plain("string"))]))),
    ];
    if is_partitioned {
        columns.insert(1, Column { is_nullable: false, ..column("app", plain("boolean")) });
    }
    let properties = BTreeMap::from([("owner".to_owned(), "team a".to_owned())]);
    Shape { columns, properties, description: Some("One row per fact".to_owned()) }
}

fn base_text(shape: &Shape) -> String {
    let mut text = format!("kind = \"{KIND}\"\ndescription = \"One row per fact\"\n");
    if shape.columns.iter().any(|c| c.name == "app") {
        text.push_str("partition_by = [\"app\"]\n");
    }
    text.push_str("[columns]\n");
    for c in &shape.columns {
        let nullable = if c.is_nullable { "" } else { ", nullable = false" };
        writeln!(text, "{} = {{ type = \"{}\"{nullable} }}", c.name, c.data_type.text()).unwrap();
    }
    text.push_str("[properties]\nowner = \"team a\"\n");
    text
}

/// One migration, as it is written down.
#[derive(Default)]
struct Steps {
    columns: Vec<String>,
    comments: BTreeMap<String, String>,
    set: Vec<String>,
    unset: Vec<String>,
    relaxed: Vec<String>,
    description: Option<String>,
}

impl Steps {
    /// One more step, in the text and in the shape.
    fn grow(&mut self, version: usize, shape: &mut Shape, before: &Shape, random: &mut Random) {
        let n = format!("{version}_{}", self.columns.len());
        match random.below(9) {
            0..=2 => self.add(format!("c{n}"), any_type(random), shape, random),
            3 => self.add(format!("payload.p{n}"), any_type(random), shape, random),
            4 => {
                let parent = random.pick(&["items.element", "tags.value"]);
                self.add(format!("{parent}.n{n}"), any_type(random), shape, random);
            }
            5 => {
                // A column that was there before this migration.
                let path = match random.below(3) {
                    0 => "payload.lsn".to_owned(),
                    1 => "tags.value.by".to_owned(),
                    _ => random.pick(&before.columns).name.clone(),
                };
                let text = format!("said at {version}");
                shape.at(&path).comment = Some(text.clone());
                self.comments.insert(path, text);
            }
            6 if !shape.at("code").is_nullable => {
                shape.at("code").is_nullable = true;
                self.relaxed.push("code".to_owned());
            }
            7 => {
                let text = format!("Facts of release {version}");
                shape.description = Some(text.clone());
                self.description = Some(text);
            }
            _ => self.properties(version, shape, random),
        }
    }

    fn add(&mut self, path: String, data_type: Type, shape: &mut Shape, random: &mut Random) {
        let comment = random.one_in(3).then(|| format!("what {path} is"));
        let text = comment.as_ref().map_or_else(String::new, |text| format!(", comment = \"{text}\""));
        self.columns.push(format!("\"{path}\" = {{ type = \"{}\"{text} }}", data_type.text()));
        let name = path.rsplit('.').next().unwrap();
        shape.siblings(&path).push(Column { comment, ..column(name, data_type) });
    }

    fn properties(&mut self, version: usize, shape: &mut Shape, random: &mut Random) {
        if self.set.is_empty() && self.unset.is_empty() {
            if random.one_in(2) {
                shape.properties.insert("owner".to_owned(), format!("team {version}"));
                self.set.push(format!("owner = \"team {version}\""));
            } else {
                shape.properties.remove("owner");
                self.unset.push("owner".to_owned());
            }
        }
    }

    fn text(&self, version: usize, raises: bool) -> String {
        let Self { columns, comments, set, unset, relaxed, description } = self;
        let mut text = format!("[[migrations]]\ndescription = \"step {version}\"\n");
        if raises {
            text.push_str("raises_min_version = true\n");
        }
        if !relaxed.is_empty() {
            writeln!(text, "relax_nullability = {relaxed:?}").unwrap();
        }
        if !unset.is_empty() {
            writeln!(text, "unset_properties = {unset:?}").unwrap();
        }
        if let Some(description) = description {
            writeln!(text, "table_description = {description:?}").unwrap();
        }
        let comments: Vec<String> = comments.iter().map(|(k, v)| format!("{k:?} = {v:?}")).collect();
        for (name, lines) in [("add_columns", columns), ("comments", &comments), ("set_properties", set)] {
            if !lines.is_empty() {
                writeln!(text, "[migrations.{name}]\n{}", lines.join("\n")).unwrap();
            }
        }
        text
    }
}

fn any_type(random: &mut Random) -> Type {
    match random.below(8) {
        0 => list(plain("string")),
        1 => map(plain("double")),
        2 => Type::Struct(vec![column("x", plain("integer")), column("y", list(plain("date")))]),
        _ => plain(["string", "long", "double", "boolean", "date", "integer"][random.below(6)]),
    }
}
