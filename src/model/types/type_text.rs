//! The type text of kind files: Delta's names and Spark's SQL names, in any letter case.
//!
//! `long`/`bigint`, `decimal(38,18)`, `array<long not null>`, `map<string, double>`,
//! `struct<a: long not null comment 'x', b: string>`.

use super::{DataType, Field, Primitive};

/// What is wrong with a type text, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}; {wanted}")]
pub(crate) struct TypeTextError {
    /// Byte offset in the text.
    pub(crate) offset: usize,
    pub(crate) found: String,
    pub(crate) wanted: String,
}

/// Reads a type text; every part is nullable unless it says `not null`.
pub(crate) fn parse_type(text: &str) -> Result<DataType, TypeTextError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let data_type = parser.data_type()?;
    parser.space();
    if parser.at < text.len() {
        let rest = text[parser.at..].to_owned();
        return Err(parser.error(format!("`{rest}` after the type"), "nothing may follow the type"));
    }
    Ok(data_type)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

type Parsed<T> = Result<T, TypeTextError>;

impl Parser<'_> {
    fn error(&self, found: impl Into<String>, wanted: impl Into<String>) -> TypeTextError {
        TypeTextError { offset: self.at, found: found.into(), wanted: wanted.into() }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, c: char) -> bool {
        self.space();
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn expect(&mut self, c: char, wanted: &str) -> Parsed<()> {
        if self.take(c) {
            return Ok(());
        }
        let found = match self.rest().chars().next() {
            Some(other) => format!("found `{other}`"),
            None => "the type ends too early".to_owned(),
        };
        Err(self.error(found, format!("wanted `{c}` {wanted}")))
    }

    fn word(&mut self) -> String {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        self.at += end;
        word
    }

    /// Takes the word if it comes next, in any letter case.
    fn keyword(&mut self, wanted: &str) -> bool {
        let before = self.at;
        let found = self.word().eq_ignore_ascii_case(wanted);
        if !found {
            self.at = before;
        }
        found
    }

    fn data_type(&mut self) -> Parsed<DataType> {
        self.space();
        let start = self.at;
        let word = self.word();
        self.depth += 1;
        if self.depth > 100 {
            return Err(self.error("more than 100 levels of nesting", "wanted a flatter type"));
        }
        let data_type = match word.to_lowercase().as_str() {
            "array" => {
                self.expect('<', "as in `array<string>`")?;
                let element = Box::new(self.data_type()?);
                let contains_null = !self.not_null()?;
                self.expect('>', "to close `array<`")?;
                DataType::Array { element, contains_null }
            }
            "map" => {
                self.expect('<', "as in `map<string, long>`")?;
                let key = Box::new(self.data_type()?);
                self.expect(',', "between the key's and the value's type, as in `map<string, long>`")?;
                let value = Box::new(self.data_type()?);
                let value_contains_null = !self.not_null()?;
                self.expect('>', "to close `map<`")?;
                DataType::Map { key, value, value_contains_null }
            }
            "struct" => {
                self.expect('<', "as in `struct<a: long>`")?;
                self.fields()?
            }
            name => DataType::Primitive(self.primitive(name, start)?),
        };
        self.depth -= 1;
        Ok(data_type)
    }

    fn fields(&mut self) -> Parsed<DataType> {
        let mut fields: Vec<Field> = Vec::new();
        if self.take('>') {
            return Err(self.error("a struct without fields", "Parquet can't store one: give it a field"));
        }
        loop {
            self.space();
            let start = self.at;
            let name = self.field_name()?;
            if let Some(other) = fields.iter().find(|f| super::same_name(&f.name, &name)) {
                let found = format!("`{name}` stands beside `{}`", other.name);
                self.at = start;
                return Err(self.error(found, "names of one struct must differ in more than letter case"));
            }
            self.take(':');
            let data_type = self.data_type()?;
            let nullable = !self.not_null()?;
            let comment = if self.keyword("comment") { Some(self.quoted()?) } else { None };
            fields.push(Field { name, data_type, nullable, comment });
            if self.take('>') {
                return Ok(DataType::Struct(fields));
            }
            self.expect(',', "between the fields or `>` after the last")?;
        }
    }

    fn field_name(&mut self) -> Parsed<String> {
        if self.take('`') {
            let (mut name, mut rest) = (String::new(), self.rest().to_owned());
            loop {
                let Some(end) = rest.find('`') else {
                    return Err(self.error("a backtick is not closed", "wanted a name such as `` `a.b` ``"));
                };
                name.push_str(&rest[..end]);
                self.at += end + 1;
                if self.rest().starts_with('`') {
                    name.push('`');
                    self.at += 1;
                    rest = self.rest().to_owned();
                } else {
                    return Ok(name);
                }
            }
        }
        let name = self.word();
        if name.is_empty() {
            return Err(self.error("a field without a name", "wanted `name: type`, as in `struct<a: long>`"));
        }
        Ok(name)
    }

    fn not_null(&mut self) -> Parsed<bool> {
        if !self.keyword("not") {
            return Ok(false);
        }
        if self.keyword("null") {
            return Ok(true);
        }
        Err(self.error("`not` without `null`", "wanted `not null`"))
    }

    /// A SQL string: single quotes, with backslash or doubled quote as escape.
    fn quoted(&mut self) -> Parsed<String> {
        self.expect('\'', "around the comment")?;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                '\'' if chars.next_if(|(_, next)| *next == '\'').is_some() => text.push('\''),
                '\'' => {
                    self.at += at + 1;
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        Err(self.error("a comment is not closed", "wanted a closing `'`"))
    }

    fn primitive(&mut self, name: &str, start: usize) -> Parsed<Primitive> {
        Ok(match name {
            "string" => Primitive::String,
            "long" | "bigint" => Primitive::Long,
            "integer" | "int" => Primitive::Integer,
            "short" | "smallint" => Primitive::Short,
            "byte" | "tinyint" => Primitive::Byte,
            "float" | "real" => Primitive::Float,
            "double" => Primitive::Double,
            "boolean" => Primitive::Boolean,
            "binary" => Primitive::Binary,
            "date" => Primitive::Date,
            "timestamp" | "timestamp_ltz" => Primitive::Timestamp,
            "timestamp_ntz" => Primitive::TimestampNtz,
            "variant" => Primitive::Variant,
            "decimal" | "dec" | "numeric" => self.decimal()?,
            _ => {
                self.at = start;
                return Err(unknown(start, name, self.rest()));
            }
        })
    }

    fn decimal(&mut self) -> Parsed<Primitive> {
        if !self.take('(') {
            return Ok(Primitive::Decimal(10, 0));
        }
        self.space();
        let start = self.at;
        let precision = self.word();
        let scale = if self.take(',') { self.word() } else { "0".into() };
        let numbers = precision.parse::<u8>().ok().zip(scale.parse::<u8>().ok());
        match numbers {
            Some((p, s)) if (1..=38).contains(&p) && s <= p => {
                self.expect(')', "to close `decimal(`")?;
                Ok(Primitive::Decimal(p, s))
            }
            _ => {
                self.at = start;
                let found = format!("decimal({precision},{scale})");
                Err(self.error(
                    format!("`{found}`"),
                    "wanted a precision from 1 to 38 and a scale from 0 to the precision",
                ))
            }
        }
    }
}

/// The error for a name that is no type, with the name that was probably meant.
fn unknown(offset: usize, name: &str, written: &str) -> TypeTextError {
    let meant = match name {
        "text" | "varchar" | "char" | "str" | "utf8" | "uuid" | "nvarchar" | "largeutf8" => Some("string"),
        "int64" | "i64" | "int8" | "uint32" | "unsigned" | "serial" | "bigserial" => Some("long"),
        "int32" | "i32" | "int4" | "uint16" => Some("integer"),
        "int16" | "i16" | "int2" => Some("short"),
        "i8" => Some("byte"),
        "float32" | "f32" | "float4" => Some("float"),
        "float64" | "f64" | "float8" | "number" => Some("double"),
        "bool" => Some("boolean"),
        "bytes" | "blob" | "bytea" | "varbinary" => Some("binary"),
        "datetime" | "timestamptz" | "timestamp_tz" | "time" => Some("timestamp"),
        "json" | "jsonb" | "object" => Some("variant` or `string"),
        "list" => Some("array<…>"),
        "record" | "row" => Some("struct<…>"),
        "dict" | "hashmap" => Some("map<…, …>"),
        _ => None,
    };
    let found = if name.is_empty() {
        match written.chars().next() {
            Some(c) => format!("found `{c}` where a type should stand"),
            None => "there is no type".to_owned(),
        }
    } else {
        format!("`{name}` is no type")
    };
    let wanted = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            "wanted one of string, long, integer, short, byte, float, double, decimal(p,s), boolean, binary, \
                 date, timestamp, timestamp_ntz, variant, array<…>, map<…, …>, struct<name: type, …>"
                .to_owned()
        }
    };
    TypeTextError { offset, found, wanted }
}
