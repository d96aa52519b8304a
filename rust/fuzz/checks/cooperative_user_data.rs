//! Cooperative user data and stream-join user data, read from the same bytes.

use crate::encode::{encode_cooperative, encode_stream_join};
use kafka_assignors_core::protocol::user_data::{StickyUserData, StreamJoinUserData, read_cooperative_generation};

pub(crate) fn check(bytes: &[u8]) {
    if let Ok(generation) = read_cooperative_generation(Some(bytes)) {
        assert!(generation >= -1);
        let written = encode_cooperative(Some(generation));
        assert_eq!(read_cooperative_generation(Some(&written)), Ok(generation));
        if bytes.len() != 4 {
            assert_eq!(StickyUserData::read(Some(bytes)).map(|data| data.generation), Ok(generation));
        }
    }
    if let Ok(data) = StreamJoinUserData::read(Some(bytes)) {
        let numbers: Vec<i32> = data.numbers.iter().collect();
        let written = encode_stream_join(&numbers, data.epoch).expect("what fitted its bytes fits again");
        let again = StreamJoinUserData::read(Some(&written)).expect("what is written can be read");
        let mut sorted = numbers;
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!((again.numbers.iter().collect::<Vec<_>>(), again.epoch), (sorted, data.epoch));
    }
}
