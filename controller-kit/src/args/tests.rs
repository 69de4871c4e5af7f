use std::ffi::OsString;

use proptest::prelude::*;

use super::*;

const PROGRAM: Program = Program {
    name: "controller",
    about: "Does this.\n\nAnd that.",
    version: "1.2.3",
    user_agent: "controller/1.2.3",
    field_manager: "controller",
    concurrency: ConcurrencyFlag::new("max-concurrent-workloads", "Workloads"),
};

/// Of a controller of owners, which has all the flags that there are.
type All = Parsed<OwnerArgs>;

fn parse(line: &str) -> Result<All, String> {
    let arguments = std::iter::once("controller")
        .chain(line.split_whitespace())
        .map(OsString::from);
    Parsed::parse(&PROGRAM, arguments).map_err(|error| error.to_string())
}

#[test]
fn nothing_said_means_the_documented_defaults() {
    let args = parse("").unwrap();
    assert_eq!(
        (
            args.own.webhook.port,
            args.process.serve.metrics_port,
            args.process.serve.health_port
        ),
        (9443, 0, 8081)
    );
    assert_eq!(
        (
            args.own.webhook.cert_dir,
            args.process.log.dev,
            args.process.log.log_level
        ),
        (None, false, LogLevel::Info)
    );
    assert_eq!(args.process.concurrency, 16);
    assert_eq!(args.process.lease.leader_elect, None);
    assert_eq!(args.own.ytt, PathBuf::from("ytt"));
    assert_eq!(args.own.ytt_memory_limit.mebibytes(), Some(512));
}

#[test]
fn the_shipped_command_line_of_the_go_controller_works() {
    let args = parse("-cert-dir=/cert -metrics-port=9998").unwrap();
    assert_eq!(
        (args.own.webhook.cert_dir, args.process.serve.metrics_port),
        (Some(PathBuf::from("/cert")), 9998)
    );
}

#[test]
fn every_upstream_flag_is_taken_in_every_form_that_go_takes() {
    for form in ["-FLAG=VALUE", "-FLAG VALUE", "--FLAG=VALUE", "--FLAG VALUE"] {
        let line = |flag: &str, value: &str| form.replace("FLAG", flag).replace("VALUE", value);
        let all = [
            line("Port", "1"),
            line("cert-dir", "/c"),
            line("log-level", "debug"),
            line("metrics-port", "2"),
            line("pprof-port", "3"),
            line("max-concurrent-deliveries", "4"),
            line("max-concurrent-workloads", "5"),
            line("max-concurrent-runnables", "6"),
            line("kubeconfig", "/k"),
        ];
        let args = parse(&all.join(" ")).unwrap();
        assert_eq!(
            (
                args.own.webhook.port,
                args.process.serve.metrics_port,
                args.process.concurrency
            ),
            (1, 2, 5)
        );
        assert_eq!(
            (
                args.process.kubeconfig,
                args.own.webhook.cert_dir,
                args.process.log.log_level
            ),
            (Some("/k".into()), Some("/c".into()), LogLevel::Debug)
        );
    }
}

#[test]
fn of_a_flag_given_twice_the_last_counts() {
    let args = parse(
        "-Port=1 -cert-dir=/c -dev -log-level=info -Port 2 -cert-dir= -dev=false --log-level=error",
    )
    .unwrap();
    assert_eq!(
        (
            args.own.webhook.port,
            args.own.webhook.cert_dir,
            args.process.log.dev,
            args.process.log.log_level
        ),
        (2, None, false, LogLevel::Error)
    );
}

#[test]
fn a_flag_that_is_empty_says_nothing() {
    for line in [
        vec!["controller", "-cert-dir=", "-kubeconfig="],
        vec!["controller", "--cert-dir", "", "-kubeconfig", ""],
        vec!["controller", "--lease-name=", "--own-namespace="],
    ] {
        let args = All::parse(&PROGRAM, line.into_iter().map(OsString::from)).unwrap();
        assert_eq!(
            (args.own.webhook.cert_dir, args.process.kubeconfig),
            (None, None)
        );
        assert_eq!(
            (
                args.process.lease.lease_name,
                args.process.serve.own_namespace
            ),
            (None, None)
        );
    }
}

#[test]
fn a_bool_is_on_when_it_stands_alone_and_what_is_written_otherwise() {
    for (line, dev) in [
        ("-dev", true),
        ("--dev", true),
        ("-dev=true", true),
        ("-dev=F", false),
        ("-dev=0", false),
        ("-dev -metrics-port 1", true),
    ] {
        assert_eq!(parse(line).unwrap().process.log.dev, dev, "{line}");
    }
    assert!(
        parse("-dev=maybe")
            .unwrap_err()
            .contains("neither true nor false")
    );
    assert_eq!(
        parse("--leader-elect=false")
            .unwrap()
            .process
            .lease
            .leader_elect,
        Some(false)
    );
    assert_eq!(
        parse("--leader-elect").unwrap().process.lease.leader_elect,
        Some(true)
    );
}

#[test]
fn a_wrong_level_is_refused_with_the_right_ones() {
    let error = parse("-log-level=trace").unwrap_err();
    assert!(error.contains("error, info, debug"), "{error}");
}

#[test]
fn a_collector_of_traces_is_named_by_a_url_that_can_be_used() {
    let named = |url: &str| parse(&format!("--otlp-endpoint={url}"));
    let endpoint = |url| named(url).unwrap().process.log.otlp_endpoint;
    assert_eq!(endpoint(""), None);
    assert_eq!(endpoint("http://a:4318").unwrap().port_u16(), Some(4318));
    assert!(endpoint("https://a/otlp").is_some());
    for url in [
        "grpc://a:4317",
        "a:4318",
        "/v1/traces",
        "http://",
        "http://a?b",
    ] {
        let error = named(url).unwrap_err();
        assert!(error.contains("--otlp-endpoint"), "{url}: {error}");
    }
}

#[test]
fn a_memory_limit_is_in_mebibytes_and_leaves_ytt_room_to_work() {
    let limit = |text| parse(&format!("--ytt-memory-limit={text}"));
    let read = |text| limit(text).unwrap().own.ytt_memory_limit.mebibytes();
    assert_eq!((read("0"), read("128")), (None, Some(128)));
    let refused = |text| limit(text).unwrap_err();
    assert!(refused("127").contains("at least 128, or 0 for no limit"));
    assert!(refused("512Mi").contains("no whole number of MiB"));
    assert!(refused("-1").contains("no whole number of MiB"));
}

/// Else the kernel ends the container before a process has reached its limit.
#[test]
fn the_shipped_containers_have_room_for_all_ytt_processes_and_as_much_for_the_controller() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/install.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    let limits: Vec<&str> = objects
        .iter()
        .filter_map(|object| object.pointer("/spec/template/spec/containers/0/resources/limits"))
        .map(|limits| limits["memory"].as_str().unwrap())
        .collect();
    let processes = u64::try_from(crate::owner::YTT_PROCESSES).unwrap();
    let each = parse("").unwrap().own.ytt_memory_limit.mebibytes().unwrap();
    let needed = format!("{}Mi", each * (processes + 1));
    assert_eq!(limits, [&*needed; 3]);
}

/// Of a controller that has no flags but those of every process.
#[derive(Debug, Clone, clap::Args)]
struct NoneOfItsOwn {}

#[test]
fn a_flag_of_the_go_controller_that_has_no_use_is_taken_and_not_shown() {
    let line = "c -Port 1 -cert-dir=/c -pprof-port=3 -max-concurrent-deliveries=4 -max-concurrent-runnables 6";
    let line = line.split(' ').map(OsString::from);
    Parsed::<NoneOfItsOwn>::parse(&PROGRAM, line).unwrap();
    let help = |command: Command| command.clone().render_long_help().to_string();
    let [bare, all] = [
        help(command::<NoneOfItsOwn>(&PROGRAM)),
        help(command::<OwnerArgs>(&PROGRAM)),
    ];
    for (text, flag, is_shown) in [
        (&bare, "--port", false),
        (&all, "--port", true),
        (&bare, "--ytt", false),
        (&all, "--ytt", true),
        (&all, "--pprof-port", false),
        (&all, "--max-concurrent-runnables", false),
        (&bare, "--max-concurrent-workloads", true),
    ] {
        assert_eq!(text.contains(flag), is_shown, "{flag}");
    }
    assert!(parse("--ytt=/y").is_ok());
    let unknown = ["c", "--ytt=/y"].map(OsString::from);
    assert!(Parsed::<NoneOfItsOwn>::parse(&PROGRAM, unknown).is_err());
}

#[test]
fn the_command_line_of_a_manager_of_kubebuilder_works() {
    let serves = |line: &str| {
        let serve = parse(line).unwrap().process.serve;
        (serve.metrics_port, serve.health_port)
    };
    let conventions = "--metrics-addr=:0 --probes-addr :8082 --enable-leader-election --zap-devel";
    assert_eq!(serves(conventions), (0, 8082));
    let presets = "--metrics-bind-address=:8080 --health-probe-bind-address=0.0.0.0:8082";
    assert_eq!(serves(presets), (8080, 8082));
    let elects = |line: &str| parse(line).unwrap().process.lease.leader_elect;
    assert_eq!(elects(conventions), Some(true));
    assert_eq!(elects("--enable-leader-election=false"), Some(false));
    parse("--zap-devel=true --zap-encoder=json --zap-log-level debug --zap-stacktrace-level=error")
        .unwrap();
    for line in [
        "--metrics-addr=127.0.0.1:8080",
        "--probes-addr=:http",
        "--metrics-addr=:70000",
    ] {
        let error = parse(line).unwrap_err();
        assert!(
            error.contains("-port <PORT>") && error.contains("address of all interfaces"),
            "{error}"
        );
    }
    let help = command::<OwnerArgs>(&PROGRAM)
        .render_long_help()
        .to_string();
    for flag in [
        "zap",
        "probes-addr",
        "metrics-addr",
        "enable-leader-election",
    ] {
        assert!(!help.contains(flag), "{flag}");
    }
}

#[test]
fn zero_means_the_default_concurrency() {
    assert_eq!(
        parse("-max-concurrent-workloads=0")
            .unwrap()
            .process
            .concurrency,
        16
    );
}

#[test]
fn a_certificate_comes_from_one_place_only() {
    assert!(parse("--cert-dir=/c --webhook-secret=s --webhook-service=w").is_err());
    assert!(
        parse("--webhook-secret=s")
            .unwrap_err()
            .contains("--webhook-service")
    );
    let args = parse("--webhook-secret=s --webhook-service=w --webhook-configuration=c").unwrap();
    assert_eq!(args.own.webhook.webhook_secret.as_deref(), Some("s"));
}

#[test]
fn what_selects_owners_is_read_and_refused_with_the_name_of_its_flag() {
    let line = "--shard=a --watch-label-selector=team=x,!old --watch-namespaces=two,one";
    let shard = parse(line).unwrap().own.shard;
    assert_eq!(shard.shard.as_deref(), Some("a"));
    assert_eq!(shard.watch_label_selector.as_deref(), Some("team=x,!old"));
    let namespaces = shard.watch_namespaces.unwrap().0;
    assert_eq!(namespaces.into_iter().collect::<Vec<_>>(), ["one", "two"]);
    for (line, flag) in [
        ("--shard=A", "--shard"),
        ("--watch-label-selector=a=b=c", "--watch-label-selector"),
        ("--watch-namespaces=a,B", "--watch-namespaces"),
        ("--watch-namespaces=a,,b", "--watch-namespaces"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(
            error.contains("invalid value") && error.contains(flag),
            "{error}"
        );
    }
    let empty = parse("--shard= --watch-label-selector= --watch-namespaces=").unwrap();
    let shard = empty.own.shard;
    assert_eq!((shard.shard, shard.watch_label_selector), (None, None));
    assert_eq!(shard.watch_namespaces, None);
}

#[test]
fn every_flag_has_an_environment_variable_and_a_help_text() {
    let command = command::<OwnerArgs>(&PROGRAM);
    let shown = command.get_arguments().filter(|it| !it.is_hide_set());
    for argument in
        shown.filter(|argument| !matches!(argument.get_id().as_str(), "help" | "version"))
    {
        let name = argument.get_id();
        assert!(
            argument.get_env().is_some(),
            "{name} has no environment variable"
        );
        let help = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(help.len() > 10, "{name} has no help");
        let off_unless_given = [
            "cert_dir",
            "webhook_secret",
            "webhook_service",
            "webhook_configuration",
        ]
        .contains(&name.as_str());
        let tells_default = !argument.get_default_values().is_empty() || help.contains("default:");
        assert!(
            tells_default || off_unless_given,
            "{name} does not tell its default"
        );
    }
}

#[test]
fn what_is_no_long_flag_stays_as_it_is() {
    let line = ["program-name", "-h", "-5", "-", "value", "--", "-cert-dir"];
    assert_eq!(go_style(line.map(OsString::from)), line);
    assert_eq!(
        go_style(["-Port".into(), "-Port".into()]),
        ["-Port", "--port"].map(OsString::from)
    );
}

proptest! {
    #[test]
    fn no_command_line_makes_it_panic_and_twice_is_once(arguments in prop::collection::vec(".*", 0..8)) {
        let once = go_style(arguments.into_iter().map(OsString::from));
        prop_assert_eq!(go_style(once.clone()), once);
    }
}
