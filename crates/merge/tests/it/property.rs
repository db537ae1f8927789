//! What holds for any three texts.

use std::collections::BTreeSet;

use merge::resolver::analysis::{HunkAnalysis, analyze_hunk};
use merge::resolver::human::human_answers;
use merge::resolver::hunk::Side;
use merge::resolver::hunk::{FilePiece, Hunk, cut, hunks, join};
use merge::three::text::{lines, tokens};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just("a"),
        Just("b"),
        Just("c"),
        Just(" "),
        Just("\t"),
        Just(","),
        Just("\n"),
        Just("\r\n"),
        Just("word"),
        Just("ü"),
        Just("<<<<<<< x\n"),
        Just("=======\n"),
        Just("\u{0}")
    ];
    proptest::collection::vec(word, 0..40).prop_map(|words| words.concat().into_bytes())
}

fn answers(analysis: &HunkAnalysis) -> Vec<&Vec<u8>> {
    let both = analysis.both.iter().flat_map(|both| [&both.ours_first, &both.theirs_first]);
    let contained = analysis.contained.iter().map(|contained| &contained.text);
    [&analysis.spaces, &analysis.apart, &analysis.touching]
        .into_iter()
        .flatten()
        .chain(both)
        .chain(contained)
        .collect()
}

fn mirrored(hunk: &Hunk) -> Hunk {
    Hunk { base: hunk.base.clone(), ours: hunk.theirs.clone(), theirs: hunk.ours.clone() }
}

proptest! {
    #[test]
    fn no_answer_has_a_token_that_is_on_no_side(base in text(), ours in text(), theirs in text()) {
        let known: BTreeSet<&[u8]> = [&base, &ours, &theirs].into_iter().flat_map(|side| tokens(side)).collect();
        let hunk = Hunk { base: base.clone(), ours: ours.clone(), theirs: theirs.clone() };
        for answer in answers(&analyze_hunk(&hunk)) {
            // Two blanks of different origin can become one; each byte of them is known.
            for token in tokens(answer) {
                let glued = token.iter().all(|byte| known.iter().any(|one| one.contains(byte)));
                prop_assert!(known.contains(token) || glued, "{token:?}");
            }
        }
    }

    #[test]
    fn merged_lines_are_lines_of_some_side(base in text(), ours in text(), theirs in text()) {
        let known: BTreeSet<&[u8]> = [&base, &ours, &theirs].into_iter().flat_map(|side| lines(side)).collect();
        for piece in cut(&base, &ours, &theirs) {
            if let FilePiece::Merged(bytes) = piece {
                // A last line without an end may meet what follows.
                let inner = lines(&bytes);
                prop_assert!(inner.iter().all(|line| known.contains(line) || !line.ends_with(b"\n")
                    || known.iter().any(|one| !one.ends_with(b"\n"))));
            }
        }
    }

    #[test]
    fn a_file_is_whole_again_with_one_side_for_each_hunk(base in text(), ours in text()) {
        let pieces = cut(&base, &ours, &base);
        prop_assert_eq!(hunks(&pieces).count(), 0);
        prop_assert_eq!(join(&pieces, []), ours.clone());
        let pieces = cut(&base, &ours, &ours);
        prop_assert_eq!(join(&pieces, []), ours);
    }

    #[test]
    fn looking_twice_shows_the_same(base in text(), ours in text(), theirs in text()) {
        let hunk = Hunk { base, ours, theirs };
        prop_assert_eq!(analyze_hunk(&hunk), analyze_hunk(&hunk));
    }

    #[test]
    fn the_mirrored_hunk_has_the_mirrored_answers(base in text(), ours in text(), theirs in text()) {
        let hunk = Hunk { base, ours, theirs };
        let (one, other) = (analyze_hunk(&hunk), analyze_hunk(&mirrored(&hunk)));
        prop_assert_eq!(&one.apart, &other.apart);
        prop_assert_eq!(one.both.as_ref().map(|both| &both.ours_first), other.both.as_ref().map(|both| &both.theirs_first));
        if let (Some(one), Some(other)) = (&one.contained, &other.contained)
            && one.text != other.text
        {
            // Where both made the same change, upstream's spelling is taken.
            prop_assert_eq!((one.of, other.of), (Side::Theirs, Side::Theirs));
        }
    }

    #[test]
    fn what_people_wrote_is_found_where_it_can_be(base in text(), ours in text(), theirs in text(), human in text()) {
        let pieces = cut(&base, &ours, &theirs);
        prop_assert_eq!(human_answers(&pieces, &human).len(), hunks(&pieces).count());
    }
}
