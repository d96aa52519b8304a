//! The claims of a group, and how they are kept once they are settled.
//!
//! A leader keeps the claims for the verification. In a healthy group nearly every claim is that of the owner, so what is kept
//! is the difference to the owners: a million claims, of 4 MB, are a few bytes.

use super::slab::hash_of;
use super::{Group, NONE};

/// From this many claims on their list, of 256 KB, is worth the time of packing.
pub const MANY_CLAIMS: usize = 1 << 16;

/// Claims that are not listed, since the owners made them.
#[derive(Debug, Clone)]
pub(super) struct OwnersClaims {
    /// The partitions whose owner does not claim them, ascending.
    unclaimed: Vec<u32>,
    /// The hash of the owners: other owners would stand for other claims.
    owners: u64,
}

impl Group {
    /// Keeps the claims as their difference to these owners, by flat partition, if there are at least `least` of them and the
    /// difference is shorter. Afterwards [`Group::claims`] has only those that are not the owner's. O(claims + partitions).
    pub fn pack_claims(&mut self, owner: &[u32], least: usize) {
        if self.owners_claims.is_some() || self.claims.len() < least {
            return;
        }
        let mut claimed = vec![false; owner.len()];
        let mut listed = 0;
        for member in 0..self.members() as u32 {
            for &partition in self.claims(member) {
                let owns = owner[partition as usize] == member;
                claimed[partition as usize] |= owns;
                listed += usize::from(!owns);
            }
        }
        let owned = (0u32..).zip(owner).filter(|(_, owner)| **owner != NONE).map(|(partition, _)| partition);
        let unclaimed: Vec<u32> = owned.filter(|&partition| !claimed[partition as usize]).collect();
        if listed + unclaimed.len() >= self.claims.len() {
            return;
        }
        let mut claims = Vec::with_capacity(listed);
        let mut starts = Vec::with_capacity(self.claim_starts.len());
        starts.push(0);
        for member in 0..self.members() as u32 {
            claims.extend(self.claims(member).iter().filter(|&&partition| owner[partition as usize] != member));
            starts.push(claims.len() as u32);
        }
        (self.claim_starts, self.claims) = (starts, claims);
        self.owners_claims = Some(OwnersClaims { unclaimed, owners: hash_of(owner) });
    }

    /// Calls `visit` with the member and the partition of every claim. `owner` has the owners to which the claims were settled;
    /// false, without a call, if the claims are kept as a difference to other owners.
    pub fn each_claim(&self, owner: &[u32], mut visit: impl FnMut(u32, u32)) -> bool {
        if let Some(OwnersClaims { unclaimed, owners }) = &self.owners_claims {
            if hash_of(owner) != *owners {
                return false;
            }
            let mut unclaimed = unclaimed.iter().copied().peekable();
            for (partition, &owner) in (0u32..).zip(owner) {
                if owner != NONE && unclaimed.next_if_eq(&partition).is_none() {
                    visit(owner, partition);
                }
            }
        }
        for member in 0..self.members() as u32 {
            self.claims(member).iter().for_each(|&partition| visit(member, partition));
        }
        true
    }
}
