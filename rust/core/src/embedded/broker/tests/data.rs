//! Produce, Fetch, ListOffsets and DeleteRecords.

use super::*;
use crate::protocol::topics::*;

#[test]
fn records_come_back_as_they_were_sent() {
    let mut client = Client::new(Config::default(), &[("t", 2)]);
    let (first, second) = (Records::at(&[10, 11, 12]).bytes(), Records::at(&[13]).bytes());
    assert_eq!(client.produce("t", 1, first.clone()).base_offset, 0);
    let answer = client.produce("t", 1, second.clone());
    assert_eq!((answer.base_offset, answer.log_start_offset, answer.error_code), (3, 0, ErrorCode::NONE));

    let whole = [placed(first, 0), placed(second.clone(), 3)].concat();
    // A fetch from the middle of a batch returns the whole batch; clients skip the first records.
    for offset in 0..3 {
        let fetched = client.fetch_from("t", 1, offset);
        assert_eq!((fetched.records.unwrap(), fetched.high_watermark), (whole.clone(), 4));
    }
    assert_eq!(client.fetch_from("t", 1, 3).records.unwrap(), placed(second, 3));
    assert_eq!(client.fetch_from("t", 1, 4).records.unwrap(), []);
    assert_eq!(client.fetch_from("t", 0, 0).records.unwrap(), []);
    for (partition, offset, code) in [
        (1, 5, ErrorCode::OFFSET_OUT_OF_RANGE),
        (1, -1, ErrorCode::OFFSET_OUT_OF_RANGE),
        (0, 1, ErrorCode::OFFSET_OUT_OF_RANGE),
        (2, 0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (-1, 0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
    ] {
        assert_eq!(client.fetch_from("t", partition, offset).error_code, code, "{partition} {offset}");
    }
    assert_eq!(client.broker.offsets("t").unwrap(), [(0, 0), (0, 4)]);
}

#[test]
fn a_fetch_is_bounded_but_never_starves() {
    let mut client = Client::new(Config::default(), &[("t", 2)]);
    let batch = Records { padding: 100, ..Records::at(&[1]) }.bytes();
    for partition in 0..2 {
        for _ in 0..3 {
            client.produce("t", partition, batch.clone());
        }
    }
    let mut asked = fetch_request("t", 0, 0, 0, 1);
    let other = FetchPartition { partition: 1, ..asked.topics[0].partitions[0].clone() };
    asked.topics[0].partitions.push(other);
    let mut sizes = |max_bytes: usize, of_partition: usize| {
        asked.max_bytes = max_bytes as i32;
        for partition in &mut asked.topics[0].partitions {
            partition.partition_max_bytes = of_partition as i32;
        }
        let response: FetchResponse = client.ask(&asked);
        let batches = |one: &FetchedPartition| one.records.as_ref().unwrap().len() / batch.len();
        response.responses[0].partitions.iter().map(batches).collect::<Vec<_>>()
    };
    assert_eq!(sizes(1 << 20, 1 << 20), [3, 3]);
    assert_eq!(sizes(batch.len() * 4, 1 << 20), [3, 1]);
    assert_eq!(sizes(1 << 20, batch.len() * 2), [2, 2]);
    assert_eq!(sizes(0, 0), [1, 0]);
}

#[test]
fn a_repeated_batch_is_not_appended_twice() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    let id: InitProducerIdResponse = client.ask(&InitProducerIdRequest::default());
    let other: InitProducerIdResponse = client.ask(&InitProducerIdRequest::default());
    assert_ne!(id.producer_id, other.producer_id);
    let id = id.producer_id;
    let batch = |sequence: i32| Records::numbered(id, 0, sequence, &[1, 1]);
    for number in 0..8 {
        assert_eq!(client.produce("t", 0, batch(number * 2)).base_offset, i64::from(number) * 2);
    }
    // A retry of one of the last five batches is recognised.
    for number in 3..8 {
        let again = client.produce("t", 0, batch(number * 2));
        assert_eq!((again.error_code, again.base_offset), (ErrorCode::NONE, i64::from(number) * 2));
    }
    for wrong in [0, 15, 18, 17] {
        let refused = client.produce("t", 0, batch(wrong));
        assert_eq!(refused.error_code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, "{wrong}");
        assert_eq!(refused.base_offset, -1);
    }
    assert_eq!(client.broker.offsets("t").unwrap(), [(0, 16)]);
    // A new producer epoch begins with sequence number 0 and fences the old one.
    let newer = |sequence| Records::numbered(id, 1, sequence, &[1]);
    assert_eq!(client.produce("t", 0, newer(3)).error_code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(client.produce("t", 0, newer(0)).base_offset, 16);
    assert_eq!(client.produce("t", 0, batch(16)).error_code, ErrorCode::INVALID_PRODUCER_EPOCH);
}

#[test]
fn sequence_numbers_wrap() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    assert_eq!(client.produce("t", 0, Records::numbered(5, 0, i32::MAX - 1, &[1])).base_offset, 0);
    assert_eq!(client.produce("t", 0, Records::numbered(5, 0, i32::MAX, &[1, 1, 1])).base_offset, 1);
    assert_eq!(
        client.produce("t", 0, Records::numbered(5, 0, 3, &[1])).error_code,
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER
    );
    assert_eq!(client.produce("t", 0, Records::numbered(5, 0, 2, &[1])).base_offset, 4);
    assert_eq!(client.produce("t", 0, Records::numbered(5, 0, i32::MAX, &[1, 1, 1])).base_offset, 1);
}

#[test]
fn bad_batches_are_refused_and_leave_no_trace() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    let good = Records::at(&[1, 2]).bytes();
    let spoilt = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let transactional = Records { attributes: 1 << 4, producer: Some((1, 0, 0)), ..Records::at(&[1]) }.bytes();
    let unnumbered = Records { producer: Some((1, -1, -1)), ..Records::at(&[1]) }.bytes();
    for (bytes, code) in [
        (Vec::new(), ErrorCode::CORRUPT_MESSAGE),
        (good[..20].to_vec(), ErrorCode::CORRUPT_MESSAGE),
        (good[..good.len() - 1].to_vec(), ErrorCode::CORRUPT_MESSAGE),
        (spoilt(16, 1), ErrorCode::INVALID_RECORD),
        (spoilt(16, 0), ErrorCode::INVALID_RECORD),
        (spoilt(17, good[17] ^ 1), ErrorCode::CORRUPT_MESSAGE),
        (spoilt(good.len() - 1, 9), ErrorCode::CORRUPT_MESSAGE),
        (spoilt(8, 0x7f), ErrorCode::CORRUPT_MESSAGE),
        (spoilt(8, 0xff), ErrorCode::CORRUPT_MESSAGE),
        ([good.clone(), good.clone()].concat(), ErrorCode::INVALID_RECORD),
        (transactional, ErrorCode::INVALID_RECORD),
        (unnumbered, ErrorCode::INVALID_RECORD),
    ] {
        assert_eq!(client.produce("t", 0, bytes.clone()).error_code, code, "{bytes:?}");
    }
    assert_eq!(client.produce("nowhere", 0, good.clone()).error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(client.produce("t", 1, good.clone()).error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let response: ProduceResponse = client.ask(&produce_request(2, "t", 0, good.clone()));
    assert_eq!(response.responses[0].partition_responses[0].error_code, ErrorCode::INVALID_REQUIRED_ACKS);
    let request = ProduceRequest { transactional_id: Some("x".to_owned()), ..produce_request(1, "t", 0, good) };
    let response: ProduceResponse = client.ask(&request);
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    assert_eq!(client.broker.offsets("t").unwrap(), [(0, 0)]);
}

#[test]
fn without_acks_there_is_no_answer_and_a_failure_hangs_up() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    let (_, handled) = client.send(1, 8, &produce_request(0, "t", 0, Records::at(&[1]).bytes()));
    assert_eq!(handled, Ok(Handled::default()));
    assert_eq!(client.broker.offsets("t").unwrap(), [(0, 1)]);
    let (_, handled) = client.send(1, 8, &produce_request(0, "t", 7, Records::at(&[1]).bytes()));
    assert_eq!(handled, Err(Hangup::Unacknowledged(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)));
}

#[test]
fn a_fetch_waits_for_enough_bytes() {
    let mut client = Client::new(Config::default(), &[("t", 2), ("u", 1)]);
    let batch = Records::at(&[1]).bytes();
    let enough = batch.len() as i32 * 2;
    let (header, handled) = client.send(7, 11, &fetch_request("t", 1, 0, 500, enough));
    assert_eq!(handled, Ok(Handled { replies: Vec::new(), parked: true }));
    assert_eq!(client.broker.next_deadline(), Some(500));
    // The fetch still waits after records of other partitions, and after one batch of its partition.
    for (topic, partition) in [("t", 0), ("u", 0), ("t", 1)] {
        client.produce(topic, partition, batch.clone());
    }
    assert_eq!(client.broker.tick(499), []);
    let (_, handled) = client.send(1, 8, &produce_request(1, "t", 1, batch.clone()));
    let replies = handled.unwrap().replies;
    assert_eq!(replies.iter().map(|reply| reply.connection).collect::<Vec<_>>(), [7, 1]);
    let response: FetchResponse = read_response(&header, &replies[0].frame).unwrap();
    assert_eq!(response.responses[0].partitions[0].records.as_ref().unwrap().len(), enough as usize);
    assert_eq!(client.broker.next_deadline(), None);

    // At the end of `max_wait_ms` the response contains the available records. A closed connection gets no response.
    let (header, handled) = client.send(8, 11, &fetch_request("t", 0, 0, 300, enough));
    assert!(handled.unwrap().parked);
    let (_, handled) = client.send(9, 11, &fetch_request("t", 0, 0, 200, enough));
    assert!(handled.unwrap().parked);
    assert_eq!(client.broker.disconnect(10, 9), []);
    assert_eq!(client.broker.next_deadline(), Some(300));
    let replies = client.broker.tick(300);
    assert_eq!(replies.len(), 1);
    let response: FetchResponse = read_response(&header, &replies[0].frame).unwrap();
    assert_eq!(response.responses[0].partitions[0].records.as_ref().unwrap().len(), batch.len());
    // An error is answered at once.
    let (_, handled) = client.send(1, 11, &fetch_request("t", 5, 0, 500, 1));
    assert!(!handled.unwrap().parked);
}

#[test]
fn a_fetch_session_is_never_granted() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    let first = FetchRequest { session_epoch: 0, ..fetch_request("t", 0, 0, 0, 1) };
    let response: FetchResponse = client.ask(&first);
    assert_eq!((response.session_id, response.error_code), (0, ErrorCode::NONE));
    let response: FetchResponse = client.ask(&FetchRequest { session_id: 4, session_epoch: 1, ..first });
    assert_eq!(response.error_code, ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
}

#[test]
fn times_become_offsets() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    for times in [&[100, 300, 200][..], &[50], &[400, 400]] {
        client.produce("t", 0, Records::at(times).bytes());
    }
    // A compressed batch is not decompressed: the search returns its first record.
    client.produce("t", 0, Records { attributes: 1, ..Records::at(&[500, 600]) }.bytes());
    for (time, offset, timestamp) in [
        (ListOffsetsPartition::EARLIEST, 0, -1),
        (ListOffsetsPartition::LATEST, 8, -1),
        (ListOffsetsPartition::MAX_TIMESTAMP, 6, 500),
        (0, 0, 100),
        (101, 1, 300),
        (300, 1, 300),
        (301, 4, 400),
        (550, 6, 500),
        (601, -1, -1),
    ] {
        assert_eq!(client.offset_at("t", 0, time), (ErrorCode::NONE, offset, timestamp), "{time}");
    }
    assert_eq!(client.offset_at("t", 0, -9).0, ErrorCode::UNSUPPORTED_VERSION);
    assert_eq!(client.offset_at("t", 1, 0).0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let twice = vec![ListOffsetsPartition { timestamp: -1, ..Default::default() }; 2];
    let topics = vec![ListOffsetsTopic { name: "t".to_owned(), partitions: twice }];
    let found: ListOffsetsResponse = client.ask(&ListOffsetsRequest { topics, ..Default::default() });
    let codes: Vec<_> = found.topics[0].partitions.iter().map(|one| one.error_code).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::INVALID_REQUEST]);
    let asked = |leader_epoch| OffsetForLeaderPartition { leader_epoch, ..Default::default() };
    let topics = vec![OffsetForLeaderTopic { topic: "t".to_owned(), partitions: vec![asked(0), asked(1)] }];
    let ends: OffsetForLeaderEpochResponse = client.ask(&OffsetForLeaderEpochRequest { topics, ..Default::default() });
    let ends: Vec<_> = ends.topics[0].partitions.iter().map(|end| (end.leader_epoch, end.end_offset)).collect();
    assert_eq!(ends, [(0, 8), (-1, -1)]);
}

#[test]
fn a_partition_forgets_what_it_need_not_keep() {
    let mut client = Client::new(Config::default(), &[]);
    let batch = Records::at(&[1]).bytes();
    let keep = Some((batch.len() * 2).to_string());
    client.broker.create_topic("t", 1, 1, vec![("retention.bytes".to_owned(), keep)]).unwrap();
    for _ in 0..5 {
        client.produce("t", 0, batch.clone());
    }
    assert_eq!(client.broker.offsets("t").unwrap(), [(3, 5)]);
    assert_eq!(client.fetch_from("t", 0, 2).error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!(client.fetch_from("t", 0, 3).log_start_offset, 3);
    assert_eq!(client.offset_at("t", 0, ListOffsetsPartition::EARLIEST).1, 3);
}

fn delete(client: &mut Client, topic: &str, partition_index: i32, offset: i64) -> (ErrorCode, i64) {
    let partitions = vec![DeleteRecordsPartition { partition_index, offset }];
    let topics = vec![DeleteRecordsTopic { name: topic.to_owned(), partitions }];
    let response: DeleteRecordsResponse = client.ask(&DeleteRecordsRequest { topics, ..Default::default() });
    let result = &response.topics[0].partitions[0];
    (result.error_code, result.low_watermark)
}

#[test]
fn the_oldest_records_are_deleted() {
    let mut client = Client::new(Config::default(), &[("t", 2)]);
    for times in [&[100, 200, 300][..], &[400], &[250, 500]] {
        client.produce("t", 0, Records::at(times).bytes());
    }
    assert_eq!(delete(&mut client, "t", 0, 2), (ErrorCode::NONE, 2));
    assert_eq!(client.broker.offsets("t").unwrap(), [(2, 6), (0, 0)]);
    assert_eq!(client.offset_at("t", 0, ListOffsetsPartition::EARLIEST).1, 2);
    assert_eq!(client.fetch_from("t", 0, 1).error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    // A partly deleted batch is returned whole.
    let whole = client.fetch_from("t", 0, 2);
    assert_eq!((whole.error_code, whole.log_start_offset), (ErrorCode::NONE, 2));
    assert_eq!(whole.records.unwrap()[..8], 0i64.to_be_bytes());
    for (time, offset, timestamp) in [(0, 2, 300), (150, 2, 300), (301, 3, 400), (401, 5, 500)] {
        assert_eq!(client.offset_at("t", 0, time), (ErrorCode::NONE, offset, timestamp), "{time}");
    }
    // An earlier offset changes nothing.
    assert_eq!(delete(&mut client, "t", 0, 1), (ErrorCode::NONE, 2));
    assert_eq!(delete(&mut client, "t", 0, 3), (ErrorCode::NONE, 3));
    // Only the later record of the last batch is left, and its time is too early: the search continues after it.
    assert_eq!(delete(&mut client, "t", 0, 5), (ErrorCode::NONE, 5));
    assert_eq!(client.offset_at("t", 0, 260), (ErrorCode::NONE, 5, 500));
    assert_eq!(delete(&mut client, "t", 0, -1), (ErrorCode::NONE, 6));
    assert_eq!(client.broker.offsets("t").unwrap()[0], (6, 6));
    assert_eq!(client.offset_at("t", 0, 0), (ErrorCode::NONE, -1, -1));
    // The offsets continue, and deleted records do not count for retention.
    assert_eq!(client.produce("t", 0, Records::at(&[600]).bytes()).base_offset, 6);
    assert_eq!(client.fetch_from("t", 0, 6).error_code, ErrorCode::NONE);
}

#[test]
fn a_deleted_record_is_found_by_no_time() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    client.produce("t", 0, Records::at(&[900, 100]).bytes());
    client.produce("t", 0, Records { attributes: 1, ..Records::at(&[500, 600]) }.bytes());
    assert_eq!(delete(&mut client, "t", 0, 1), (ErrorCode::NONE, 1));
    assert_eq!(client.offset_at("t", 0, 450), (ErrorCode::NONE, 2, 500), "the only later one of the batch has gone");
    assert_eq!(delete(&mut client, "t", 0, 3), (ErrorCode::NONE, 3));
    assert_eq!(client.offset_at("t", 0, 450), (ErrorCode::NONE, 3, 500), "a compressed batch is not opened");
}

#[test]
fn what_records_cannot_be_deleted() {
    let mut client = Client::new(Config::default(), &[("t", 1)]);
    client.produce("t", 0, Records::at(&[1, 2]).bytes());
    let compact = vec![("cleanup.policy".to_owned(), Some("compact".to_owned()))];
    client.broker.create_topic("compact", 1, 1, compact).unwrap();
    let both = vec![("cleanup.policy".to_owned(), Some("compact, delete".to_owned()))];
    client.broker.create_topic("both", 1, 1, both).unwrap();
    for (topic, partition, offset, code) in [
        ("t", 0, 3, ErrorCode::OFFSET_OUT_OF_RANGE),
        ("t", 0, -2, ErrorCode::OFFSET_OUT_OF_RANGE),
        ("t", 0, i64::MAX, ErrorCode::OFFSET_OUT_OF_RANGE),
        ("t", 1, 0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, 0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ("u", 0, 0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ("both", 0, 1, ErrorCode::OFFSET_OUT_OF_RANGE),
        ("compact", 0, 0, ErrorCode::POLICY_VIOLATION),
    ] {
        assert_eq!(delete(&mut client, topic, partition, offset), (code, -1), "{topic} {partition} {offset}");
    }
    assert_eq!(delete(&mut client, "both", 0, -1), (ErrorCode::NONE, 0));
    assert_eq!(client.broker.offsets("t").unwrap(), [(0, 2)]);
    assert!(client.broker.inject(ApiKey::DeleteRecords, ErrorCode::NOT_LEADER_OR_FOLLOWER, 1));
    assert_eq!(delete(&mut client, "t", 0, 1), (ErrorCode::NOT_LEADER_OR_FOLLOWER, -1));
    assert_eq!(delete(&mut client, "t", 0, 1), (ErrorCode::NONE, 1));
}
