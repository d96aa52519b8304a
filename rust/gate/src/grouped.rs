//! The groups that `gate restricted` and `gate lag` plan: each member reads a few of many topics.

use kafka_assignors_core::planning::group::{Csr, Group, GroupBuilder, TopicSpec, Topics};
use kafka_assignors_core::planning::restrictions::Restrictions;

/// The topics of a member, and the sets of the restrictions.
const WIDTH: u32 = 4;
const SETS: u32 = 20;

/// The numbers of topics, of partitions of a topic, and of members.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) topics: u32,
    pub(crate) partitions: u32,
    pub(crate) members: u32,
}

impl Size {
    /// The topics of a member, ascending.
    fn subscription(self, member: u32) -> Vec<u32> {
        let mut topics: Vec<u32> = (0..WIDTH).map(|at| (member * 7 + at * 13) % self.topics).collect();
        topics.sort_unstable();
        topics.dedup();
        topics
    }

    /// The first subscriber of each topic owns its partitions, whose lags differ.
    pub(crate) fn group(self) -> Group {
        let names: Vec<String> = (0..self.topics).map(|topic| format!("topic-{topic:04}")).collect();
        let spec = |name| TopicSpec { name, partitions: self.partitions.into(), racks: None };
        let mut topics =
            Topics::new(names.iter().map(|name| spec(name)).collect()).expect("topics with different names");
        topics.set_lags((0..topics.partitions() as u64).map(|partition| partition * 7_919 % 20_000).collect());
        let mut builder = GroupBuilder::new(topics);
        let mut taken = vec![false; self.topics as usize];
        for number in 0..self.members {
            let read = self.subscription(number);
            let subscription = builder.subscription(&read);
            let id = format!("member-{number:05}");
            let mut member = builder.member(&id, subscription).generation(1);
            for &topic in read.iter().filter(|&&topic| !std::mem::replace(&mut taken[topic as usize], true)) {
                member.topics().range(topic).for_each(|partition| member.claim(partition));
            }
            member.finish();
        }
        builder.finish()
    }

    /// Each partition is for two thirds of the members, none of which may have much more than the mean.
    pub(crate) fn restrictions(self) -> Restrictions {
        let mut sets = Csr::new();
        for set in 0..SETS {
            sets.push_row(&(0..self.members).filter(|member| (member + set) % 3 > 0).collect::<Vec<_>>());
        }
        let partitions = self.topics * self.partitions;
        let most = partitions.div_ceil(self.members) + 1;
        Restrictions {
            sets,
            set_of: (0..partitions).map(|partition| partition % SETS).collect(),
            capacity: vec![most; self.members as usize],
        }
    }
}
