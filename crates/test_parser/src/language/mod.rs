//! The languages, one module each: which nodes of a tree are tests, what keeps them from running, and what asserts.

mod c;
mod go;
mod java;
mod javascript;
mod python;
mod rust;

use crate::Tests;
use crate::source::parse_tree;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Go,
    Java,
    C,
    Cpp,
}

impl Language {
    /// The language of a file, by its name.
    pub(crate) fn of(path: &[u8]) -> Option<Self> {
        let name = std::str::from_utf8(file_name(path)).ok()?;
        let (_, extension) = name.rsplit_once('.')?;
        Some(match extension {
            "rs" => Self::Rust,
            "py" => Self::Python,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "go" => Self::Go,
            "java" => Self::Java,
            "c" => Self::C,
            "h" | "cc" | "cpp" | "cxx" | "C" | "hh" | "hpp" | "hxx" | "cu" | "mm" => Self::Cpp,
            _ => return None,
        })
    }

    /// The tests of a file; `None` if it cannot be parsed.
    pub(crate) fn tests(self, path: &[u8], bytes: &[u8]) -> Option<Tests> {
        let tree = parse_tree(&self.grammar(), bytes)?;
        let root = tree.root_node();
        Some(match self {
            Self::Rust => rust::tests(bytes, root),
            Self::Python => python::tests(path, bytes, root),
            Self::JavaScript | Self::TypeScript | Self::Tsx => javascript::tests(path, bytes, root),
            Self::Go => go::tests(path, bytes, root),
            Self::Java => java::tests(bytes, root),
            Self::C | Self::Cpp => c::tests(bytes, root),
        })
    }

    /// Texts of which a file with tests has at least one. Most files have none and need not be parsed.
    pub(crate) fn signs(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["test", "quickcheck", "bench"],
            Self::Python => &["test"],
            Self::JavaScript | Self::TypeScript | Self::Tsx => {
                &["test", "describe", "suite", "context", "it(", "it.", "specify"]
            }
            Self::Go => &["Test", "Benchmark", "Fuzz", "Example", "Describe"],
            Self::Java => &["Test", "Property", "Theory"],
            Self::C | Self::Cpp => &["TEST", "Test", "test_", "_test", "SCENARIO"],
        }
    }

    fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::Java => tree_sitter_java::LANGUAGE.into(),
            Self::C => tree_sitter_c::LANGUAGE.into(),
            Self::Cpp => tree_sitter_cpp::LANGUAGE.into(),
        }
    }
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}
