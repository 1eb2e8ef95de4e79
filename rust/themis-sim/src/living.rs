//! Things that all have numbers from the start and are there for a while only.
//!
//! A run of a million jobs has a few thousand under way at a time: what one takes while it is under way
//! is kept for those alone, at 4 bytes for each of the others.

use std::ops::{Index, IndexMut};

const NOWHERE: u32 = u32::MAX;

/// Values by number, of those that are there.
#[derive(Clone, Debug)]
pub(crate) struct Living<T> {
    /// Where in `values`, by number.
    places: Vec<u32>,
    /// What has gone stands until its place is used again.
    values: Vec<T>,
    /// Places of what has gone.
    free: Vec<u32>,
}

impl<T> Living<T> {
    /// Nobody of so many is there yet.
    pub(crate) fn new(numbers: usize) -> Self {
        Self { places: vec![NOWHERE; numbers], values: Vec::new(), free: Vec::new() }
    }

    /// A number that is there from now on.
    pub(crate) fn enter(&mut self, number: u32, value: T) {
        let next = self.values.len() as u32;
        let place = self.free.pop().unwrap_or(next);
        if place == next {
            self.values.push(value);
        } else {
            self.values[place as usize] = value;
        }
        self.places[number as usize] = place;
    }

    /// A number that is there no more.
    pub(crate) fn leave(&mut self, number: u32) {
        let place = std::mem::replace(&mut self.places[number as usize], NOWHERE);
        if place != NOWHERE {
            self.free.push(place);
        }
    }

    /// The value of a number that is there.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        self.values.get(*self.places.get(number)? as usize)
    }

    #[inline]
    fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.values.get_mut(*self.places.get(number)? as usize)
    }
}

impl<T> Default for Living<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

const THERE: &str = "invariant: nobody asks for what has not come yet or has gone";

impl<T> Index<usize> for Living<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: usize) -> &T {
        self.get(number).expect(THERE)
    }
}

impl<T> IndexMut<usize> for Living<T> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut T {
        self.get_mut(number).expect(THERE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut living = Living::new(1000);
        for number in 0..1000 {
            living.enter(number, number.to_string());
            assert_eq!(living[number as usize], number.to_string());
            if number >= 10 {
                living.leave(number - 10);
                living.leave(number - 10);
                assert_eq!(living.get(number as usize - 10), None);
            }
        }
        let there: Vec<usize> = (0..1001).filter(|number| living.get(*number).is_some()).collect();
        assert_eq!(there, (990..1000).collect::<Vec<usize>>());
        assert_eq!(living.values.len(), 11);
    }
}
