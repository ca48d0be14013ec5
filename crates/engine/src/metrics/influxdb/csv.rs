//! Annotated CSV as InfluxDB sends it: the `_value` of every record, in its native type.

use serde_json::Value;

/// The columns of the table that is being read.
#[derive(Default)]
struct Table {
    types: Vec<String>,
    defaults: Vec<String>,
    names: Vec<String>,
}

/// The `_value` of every record; an error table is an error.
pub fn values(text: &str) -> Result<Vec<Value>, String> {
    let mut values = Vec::new();
    let mut table = Table::default();
    for row in rows(text)? {
        let is_blank = row.iter().all(String::is_empty);
        match row.first().map(String::as_str) {
            _ if is_blank => table.names.clear(),
            Some("#datatype") => table = Table { types: row, ..Table::default() },
            Some("#default") => table.defaults = row,
            Some(annotation) if annotation.starts_with('#') => {}
            _ if table.names.is_empty() => table.names = row,
            _ => match table.column("error") {
                Some(place) => {
                    let message = row.get(place).cloned().unwrap_or_default();
                    return Err(format!("flux query failed: {message}"));
                }
                None => values.push(table.value(&row)?),
            },
        }
    }
    Ok(values)
}

impl Table {
    fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    fn value(&self, row: &[String]) -> Result<Value, String> {
        let Some(place) = self.column("_value") else { return Ok(Value::Null) };
        let text = row.get(place).filter(|text| !text.is_empty());
        let Some(text) = text.or_else(|| self.defaults.get(place)) else { return Ok(Value::Null) };
        let datatype = self.types.get(place).map_or("string", String::as_str);
        let invalid = || format!("invalid {datatype} {text:?} in column _value");
        if text.is_empty() && datatype != "string" {
            return Ok(Value::Null);
        }
        Ok(match datatype {
            "double" => Value::from(text.parse::<f64>().map_err(|_| invalid())?),
            "long" => Value::from(text.parse::<i64>().map_err(|_| invalid())?),
            "unsignedLong" => Value::from(text.parse::<u64>().map_err(|_| invalid())?),
            "boolean" => Value::from(text == "true"),
            _ => Value::from(text.as_str()),
        })
    }
}

/// The rows of CSV; quoted fields may contain commas, quotes and line ends.
fn rows(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut rows = Vec::new();
    let (mut row, mut field) = (Vec::new(), String::new());
    let mut characters = text.chars().peekable();
    let mut is_quoted = false;
    while let Some(c) = characters.next() {
        match (c, is_quoted) {
            ('"', true) if characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            ('"', true) => is_quoted = false,
            ('"', false) if field.is_empty() => is_quoted = true,
            (',', false) => row.push(std::mem::take(&mut field)),
            ('\r', false) if characters.peek() == Some(&'\n') => {}
            ('\n', false) => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            (c, _) => field.push(c),
        }
    }
    if is_quoted {
        return Err("the CSV answer ends within quotes".to_owned());
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_keep_their_types() {
        let head = |datatype: &str| {
            format!("#datatype,string,long,{datatype}\n#default,_result,,\n,result,table,_value\n")
        };
        let cases = [
            ("double", "0.5\n,,0,2", json!([0.5, 2.0])),
            ("long", "7", json!([7])),
            ("unsignedLong", "7", json!([7])),
            ("boolean", "true", json!([true])),
            ("string", "\"a,\"\"b\"\"\"", json!(["a,\"b\""])),
            ("double", "", json!([null])),
        ];
        for (datatype, value, expected) in cases {
            let text = format!("{},,0,{value}\r\n\r\n", head(datatype));
            assert_eq!(json!(values(&text).unwrap()), expected, "{datatype} {value}");
        }
        let without = "#datatype,string,long,double\n,result,table,other\n,,0,1\n";
        assert_eq!(json!(values(without).unwrap()), json!([null]), "no column _value");
        assert!(values("").unwrap().is_empty());
    }

    #[test]
    fn an_error_table_and_broken_text_are_errors() {
        let table = "#datatype,string,long,double\n,result,table,_value\n,,0,1\n\n\
                     #datatype,string,string\n,error,reference\n,query broke,897\n";
        assert_eq!(values(table).unwrap_err(), "flux query failed: query broke");
        let bad = "#datatype,string,long,double\n,result,table,_value\n,,0,x\n";
        assert_eq!(values(bad).unwrap_err(), "invalid double \"x\" in column _value");
        assert!(values("a,\"b").is_err());
    }
}
