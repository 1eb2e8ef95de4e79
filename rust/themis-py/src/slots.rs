//! `number_slots`: racks, machines and slots by label, numbered in the order of the core.

use std::collections::{HashMap, HashSet};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::columns::Table as Columns;

/// Whole numbers come before text.
#[derive(FromPyObject, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Label {
    Number(i64),
    Text(String),
}

impl Label {
    fn read(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// As Python would write it in code.
    fn in_code(&self, py: Python<'_>) -> PyResult<String> {
        match self {
            Self::Number(number) => Ok(number.to_string()),
            Self::Text(text) => PyString::new(py, text).repr().map(|repr| repr.to_string()),
        }
    }
}

/// Rack, machine and slot.
type Key = (Label, Label, Label);

/// Numbers the slots named, each distinct one once: `first` (where it is named first), `rack` and
/// `machine`, a row a distinct slot in the order of rack, machine and slot; `number`, a row a
/// slot named; and `clash`: where the first is named that does not go with those before it, and
/// why, or None.
#[pyfunction]
pub(crate) fn number_slots(py: Python<'_>, named: Vec<Key>) -> PyResult<Bound<'_, PyDict>> {
    let key = |at: &u32| &named[*at as usize];
    let mut order: Vec<u32> = (0..named.len() as u32).collect();
    order.sort_by(|a, b| key(a).cmp(key(b)));
    let mut number = vec![0; named.len()];
    let (mut first, mut rack, mut machine) = (Vec::new(), Vec::new(), Vec::new());
    let (mut racks, mut machines) = (0_u32, 0_u32);
    for same in order.chunk_by(|a, b| key(a) == key(b)) {
        if let Some(before) = first.last() {
            racks += u32::from(key(before).0 != key(&same[0]).0);
            machines += u32::from(key(before).1 != key(&same[0]).1);
        }
        for at in same {
            number[*at as usize] = first.len() as u32;
        }
        first.push(same[0]);
        rack.push(racks);
        machine.push(machines);
    }
    let table = Columns::new(py)
        .with("first", first)?
        .with("rack", rack)?
        .with("machine", machine)?
        .with("number", number)?;
    table.columns.set_item("clash", clash(py, &named)?)?;
    Ok(table.columns)
}

/// A slot that does not go with those before it, and why.
type Clash = (usize, String);

fn clash(py: Python<'_>, named: &[Key]) -> PyResult<Option<Clash>> {
    if let Some(clash) = in_two_racks(py, named)? {
        return Ok(Some(clash));
    }
    let columns: [fn(&Key) -> &Label; 3] = [|slot| &slot.0, |slot| &slot.1, |slot| &slot.2];
    let mut found = None;
    for column in columns {
        found = found.or(read_alike(py, named.iter().map(column))?);
    }
    Ok(found)
}

/// The first slot whose machine was in another rack before.
fn in_two_racks(py: Python<'_>, named: &[Key]) -> PyResult<Option<Clash>> {
    let mut rack_of: HashMap<&Label, &Label> = HashMap::new();
    for (at, (rack, machine, _)) in named.iter().enumerate() {
        let known = *rack_of.entry(machine).or_insert(rack);
        if known != rack {
            let words = format!(
                "machine {} is in rack {}, and in rack {} elsewhere: expected one",
                machine.in_code(py)?,
                rack.in_code(py)?,
                known.in_code(py)?,
            );
            return Ok(Some((at, words)));
        }
    }
    Ok(None)
}

/// The first label in text that a whole number reads like.
fn read_alike<'a>(
    py: Python<'_>,
    labels: impl Iterator<Item = &'a Label> + Clone,
) -> PyResult<Option<Clash>> {
    let texts = || labels.clone().enumerate().filter(|(_, label)| matches!(label, Label::Text(_)));
    if texts().next().is_none() {
        return Ok(None);
    }
    let numbers = labels.clone().filter(|label| matches!(label, Label::Number(_)));
    let numbers: HashSet<String> = numbers.map(Label::read).collect();
    let Some((at, text)) = texts().find(|(_, text)| numbers.contains(&text.read())) else {
        return Ok(None);
    };
    Ok(Some((at, format!("labels {} and {} read the same", text.read(), text.in_code(py)?))))
}
