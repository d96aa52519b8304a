"""What tests run against: a real Apache Kafka, consumers in processes of their own, a record of who held what."""
