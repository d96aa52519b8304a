//! CPU time and memory of this process. Linux only: both are read from `/proc/self`.
#![allow(dead_code, reason = "no example needs all of it")]

/// User and system time so far.
pub(crate) fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let ticks = stat.rsplit(") ").next().expect("fields").split(' ').skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().expect("ticks")).sum::<f64>() / 100.0
}

/// A field of `/proc/self/status` in MB: `VmRSS:` is the present resident memory, `VmHWM:` the largest so far.
pub(crate) fn megabytes(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the field");
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().expect("kB") * 1024.0 / 1e6
}

/// The time on a processor so far, in nanoseconds.
pub(crate) fn cpu_nanoseconds() -> u64 {
    let times = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    times.split(' ').next().and_then(|time| time.parse().ok()).expect("the time")
}
