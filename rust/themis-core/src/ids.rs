//! Dense identifiers. They index columns, and their order decides ties.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The position of this id in its column.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// An app. Callers number apps by (arrival, app id), so that the smaller id wins a tie.
    AppId
);
id!(
    /// A machine, in the order of the cluster description.
    MachineId
);
id!(
    /// A rack, in the order of first mention.
    RackId
);
id!(
    /// A slot: the GPUs of one machine that share a fast link. Numbered machine by machine.
    SlotId
);
