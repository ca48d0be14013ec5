//! The board on screens of two sizes, and its keys.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::picture::tests::scene;
use super::*;

const SMALL: (u16, u16) = (60, 20);
const LARGE: (u16, u16) = (120, 40);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Six rollouts, one of them with a long name in another namespace.
fn board() -> Board {
    let mut board = Board::new(at(0), "/home/ada/work/gradus-demo.kubeconfig", true);
    board.see(scenes());
    board.note("checkout", "Rollout is paused (CanaryPauseStep)", false, at(3));
    board.note("search", "a person sets the image nginx:1.28", false, at(4));
    board
}

fn scenes() -> Vec<Scene> {
    let names = ["cart", "checkout", "colors", "payments", "search"];
    let mut scenes: Vec<Scene> =
        names.iter().map(|name| Scene { name: (*name).to_owned(), ..scene() }).collect();
    let name = "a-rollout-whose-name-is-quite-a-bit-longer-than-others".to_owned();
    scenes.push(Scene { namespace: "staging".to_owned(), name, ..scene() });
    scenes
}

/// The lines of the screen.
fn drawn(board: &mut Board, (width, height): (u16, u16), tree: Option<&str>) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| board.render(frame, tree, at(5))).unwrap();
    let cells = &terminal.backend().buffer().content;
    let lines = cells.chunks(usize::from(width).max(1)).map(|line| {
        let line: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned()
    });
    lines.collect()
}

fn press(board: &mut Board, code: KeyCode) -> Option<Wish> {
    board.press(KeyEvent::new(code, KeyModifiers::NONE), at(5))
}

#[test]
fn six_rollouts_their_log_and_the_keys_fit_60_by_20() {
    let lines = drawn(&mut board(), SMALL, None);
    assert_eq!(
        lines,
        [
            "gradus demo  6 rollouts                people: active  5.0 s",
            "KUBECONFIG=gradus-demo.kubeconfig kubectl get rollouts",
            "▸ cart                 Paused       step 1/4, weight 20 %",
            "    ██░░░░░░  canary 2 ◌  stable 1 ● ×",
            "  checkout             Paused       step 1/4, weight 20 %",
            "    ██░░░░░░  canary 2 ◌  stable 1 ● ×",
            "  colors               Paused       step 1/4, weight 20 %",
            "    ██░░░░░░  canary 2 ◌  stable 1 ● ×",
            "  payments             Paused       step 1/4, weight 20 %",
            "    ██░░░░░░  canary 2 ◌  stable 1 ● ×",
            "  search               Paused       step 1/4, weight 20 %",
            "    ██░░░░░░  canary 2 ◌  stable 1 ● ×",
            "  staging/a…han-others Paused       step 1/4, weight 20 %",
            "    ██░░░░░░  canary 2 ◌  stable 1 ● ×",
            "",
            "",
            "",
            "   3.0 s checkout             Rollout is paused (CanaryPaus…",
            "   4.0 s search               a person sets the image nginx…",
            "q quit  ? help  ↑↓ move  ⏎ open  p promote  a abort  s stop",
        ]
    );
}

#[test]
fn at_120_by_40_every_rollout_is_a_tree_and_the_free_lines_are_the_log() {
    let mut board = board();
    for second in 0..50 {
        board.note("cart", &format!("event {second}"), false, at(second));
    }
    let lines = drawn(&mut board, LARGE, None);
    assert_eq!(
        lines[1],
        "export KUBECONFIG=/home/ada/work/gradus-demo.kubeconfig; kubectl get rollouts"
    );
    let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!(count("└─ checkout-9f4 revision 1 stable  ● a1 × b2"), 6);
    assert_eq!(count("pause until promoted, weight 20 %"), 6);
    assert_eq!(count("event "), 7, "{lines:#?}");
    assert!(lines[38].contains("event 49"), "the last one is at the bottom");
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    for height in 0..24 {
        for width in [0, 1, 10, 60] {
            for keys in ["", "?", "\n"] {
                let mut board = board();
                keys.chars().for_each(|key| {
                    press(
                        &mut board,
                        if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) },
                    );
                });
                let tree = board.opened().map(|_| "one\ntwo\nthree");
                drawn(&mut board, (width, height), tree);
            }
        }
    }
}

#[test]
fn the_chosen_rollout_stays_in_view_and_stays_chosen() {
    let mut board = board();
    for _ in 0..9 {
        press(&mut board, KeyCode::Down);
    }
    let lines = drawn(&mut board, (60, 9), None);
    assert!(lines.iter().any(|line| line.starts_with("▸ staging/")), "{lines:#?}");
    press(&mut board, KeyCode::Up);
    assert_eq!(board.chosen().unwrap().1, "search");
    board.see(scenes().into_iter().skip(2).collect());
    assert_eq!(board.chosen().unwrap().1, "search", "others are gone, it is not");
    press(&mut board, KeyCode::Enter);
    assert!(board.opened().is_some());
    board.see(scenes().into_iter().take(2).collect());
    assert_eq!(board.opened(), None, "a tree of what is gone cannot be shown");
}

#[test]
fn the_legend_is_whole_at_60_by_20_and_goes_away() {
    let mut board = board();
    press(&mut board, KeyCode::Char('?'));
    let lines = drawn(&mut board, SMALL, None).join("\n");
    for expected in [
        "promote: end the pause, or skip the step",
        "● ready  ◌ starting  ○ running, not ready  × ending",
        "/home/ada/work/gradus-demo.kubeconfig",
        "gradus promote checkout",
        "q quit  ? back",
    ] {
        assert!(lines.contains(expected), "{expected:?} in:\n{lines}");
    }
    press(&mut board, KeyCode::Char('?'));
    assert!(!drawn(&mut board, SMALL, None).join("\n").contains("end the pause"));
}

#[test]
fn a_tree_scrolls_and_its_log_is_that_of_its_rollout() {
    let mut board = board();
    press(&mut board, KeyCode::Down);
    press(&mut board, KeyCode::Enter);
    let table: String = (0..30).map(|line| format!("line {line}\n")).collect();
    let text = format!("Name: checkout\n{table}\n{table}");
    let lines = drawn(&mut board, SMALL, Some(&text));
    assert!(lines[2].contains("checkout") && lines[3].contains("1/5 updated"), "{lines:#?}");
    assert_eq!((lines[4].as_str(), lines[16].as_str()), ("line 0", "line 12"));
    assert!(lines[18].contains("checkout") && lines[18].contains("paused"), "{lines:#?}");
    for _ in 0..40 {
        press(&mut board, KeyCode::Down);
    }
    assert_eq!(drawn(&mut board, SMALL, Some(&text))[16], "line 29", "no further than the end");
    press(&mut board, KeyCode::Up);
    assert_eq!(drawn(&mut board, SMALL, Some(&text))[16], "line 28", "and back at once");
    let lines = drawn(&mut board, LARGE, Some("Name: checkout\nStatus: x\n\nNAME"));
    assert_eq!(lines[2..6], ["Name: checkout", "Status: x", "", "NAME"], "where it fits");
    press(&mut board, KeyCode::Esc);
    assert_eq!(board.opened(), None);
}

#[test]
fn keys_ask_for_what_they_say() {
    let key = |name: &str| ("default".to_owned(), name.to_owned());
    let mut board = board();
    let cases = [
        (KeyCode::Char('x'), None),
        (KeyCode::Char('p'), Some(Wish::Act(key("cart"), Box::new(Action::Promote)))),
        (KeyCode::Down, None),
        (KeyCode::Char('a'), Some(Wish::Act(key("checkout"), Box::new(Action::Abort)))),
        (KeyCode::Char('q'), Some(Wish::Quit)),
    ];
    for (code, expected) in cases {
        assert_eq!(press(&mut board, code), expected, "{code:?}");
    }
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(board.press(interrupt, at(5)), Some(Wish::Quit));
    press(&mut board, KeyCode::Char('s'));
    assert!(!board.are_people_active);
    assert!(drawn(&mut board, SMALL, None)[0].contains("people: stopped"));
    let mut promoted = scenes();
    promoted[1].standing.is_promoted = true;
    promoted[1].standing.phase = "Healthy".to_owned();
    board.see(promoted);
    assert_eq!(press(&mut board, KeyCode::Char('a')), None, "there is nothing to abort");
    let log = drawn(&mut board, LARGE, None)[38].clone();
    assert!(log.ends_with("nothing to abort: no update is under way, it is Healthy"), "{log}");
}

#[test]
fn colours_are_used_only_where_they_are_wanted() {
    for colour in [true, false] {
        let mut board = Board { colour, ..board() };
        let mut terminal = Terminal::new(TestBackend::new(60, 20)).unwrap();
        terminal.draw(|frame| board.render(frame, None, at(5))).unwrap();
        let cells = &terminal.backend().buffer().content;
        assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset), colour);
    }
}
