//! The claims of a group, and how they are kept once they are settled.
//!
//! A leader keeps the claims for the verification. In a healthy group nearly every claim comes from the partition's owner, so
//! the leader keeps only the difference between claims and owners: a few bytes instead of 4 MB for a million claims.

use super::slab::hash_of;
use super::{Group, NONE};

/// The least number of claims for which packing is worth its time: their list has 256 KB.
pub const MANY_CLAIMS: usize = 1 << 16;

/// The claims that partitions' owners made. They are not listed; the owners stand for them.
#[derive(Debug, Clone)]
pub(super) struct OwnersClaims {
    /// The partitions whose owner does not claim them, ascending.
    unclaimed: Vec<u32>,
    /// The hash of these owners. With other owners, the difference would mean other claims.
    owners: u64,
}

impl Group {
    /// Keeps the claims as their difference to these owners, by flat partition, if there are at least `least` of them and the
    /// difference is shorter. Afterwards [`Group::claims`] contains only claims of members that are not the owner. O(claims +
    /// partitions).
    pub fn pack_claims(&mut self, owner: &[u32], least: usize) {
        if self.owners_claims.is_some() || self.claims.len() < least {
            return;
        }
        let (mut claims, mut starts) = (Vec::new(), Vec::with_capacity(self.claim_starts.len()));
        // Members send their claims in ascending order. Then no claim repeats, and it is enough to count the owners' claims.
        let (mut owners_claims, mut ascending) = (0, true);
        starts.push(0);
        for member in 0..self.members() as u32 {
            let mut next = 0;
            for &partition in self.claims(member) {
                ascending &= partition >= next;
                next = partition + 1;
                if owner[partition as usize] == member {
                    owners_claims += 1;
                } else {
                    claims.push(partition);
                }
            }
            starts.push(claims.len() as u32);
        }
        let owned = owner.iter().filter(|&&owner| owner != NONE).count();
        let unclaimed = if ascending && owners_claims == owned { Vec::new() } else { self.unclaimed(owner) };
        if claims.len() + unclaimed.len() >= self.claims.len() {
            return;
        }
        (self.claim_starts, self.claims) = (starts, claims);
        self.owners_claims = Some(OwnersClaims { unclaimed, owners: hash_of(owner) });
    }

    /// The partitions whose owner does not claim them, ascending.
    fn unclaimed(&self, owner: &[u32]) -> Vec<u32> {
        let mut claimed = vec![false; owner.len()];
        for member in 0..self.members() as u32 {
            for &partition in self.claims(member) {
                claimed[partition as usize] |= owner[partition as usize] == member;
            }
        }
        let open = (0u32..).zip(owner.iter().zip(claimed)).filter(|(_, (owner, claimed))| **owner != NONE && !claimed);
        open.map(|(partition, _)| partition).collect()
    }

    /// Calls `visit` with the member and the partition of every claim. `owner` contains the owners to which the claims were
    /// settled. Returns false, without a call, if the claims are kept as a difference to other owners.
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
