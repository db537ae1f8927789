//! Paths whose content acts by itself once it is pushed, checked out or opened: definitions of CI, git hooks, and files
//! that agents, editors and package managers obey.
//!
//! The table is the only list of such paths. Names are compared as the most generous file system would: without case,
//! without characters that have no width, and with look-alike letters read as the letters they look like.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// Kind of a path whose content acts by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SensitiveKind {
    /// Runs on the forge with the repository's secrets as soon as it is pushed.
    Ci,
    /// Runs when somebody works with git in a checkout.
    GitHook,
    /// Read as instructions or settings by coding agents.
    AgentFile,
    /// Read as settings or tasks by editors and shells.
    EditorFile,
    /// Runs when packages are installed or tested.
    InstallScript,
    /// Read by git and forges: it decides what is shown, merged, exported and fetched.
    GitFile,
}

impl SensitiveKind {
    pub fn description(self) -> &'static str {
        match self {
            Self::Ci => "CI definition",
            Self::GitHook => "git hook",
            Self::AgentFile => "file that agents obey",
            Self::EditorFile => "file that editors obey",
            Self::InstallScript => "install or test script",
            Self::GitFile => "file that git obeys",
        }
    }
}

/// Returns the kind of a path, relative to the root of the tree, if its content acts by itself.
pub fn sensitive_path(path: &[u8]) -> Option<SensitiveKind> {
    find_kind(path, SensitivePattern::matches)
}

/// Returns the kind of the paths below this one that act by themselves: a link here provides all of them.
pub fn sensitive_below(path: &[u8]) -> Option<SensitiveKind> {
    find_kind(path, SensitivePattern::is_below)
}

fn find_kind(
    path: &[u8],
    fits: fn(&SensitivePattern<'static>, &[String]) -> bool,
) -> Option<SensitiveKind> {
    let names = fold_path(path);
    PATTERNS.iter().find(|(pattern, _)| fits(pattern, &names)).map(|(_, kind)| *kind)
}

static PATTERNS: LazyLock<Vec<(SensitivePattern<'static>, SensitiveKind)>> = LazyLock::new(|| {
    TABLE.iter().map(|(text, kind)| (SensitivePattern::parse(text), *kind)).collect()
});

/// Splits a path into names in the spelling by which they are compared.
pub fn fold_path(path: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(path);
    text.split(['/', '\\']).filter(|name| !name.is_empty()).map(fold_name).collect()
}

/// Folds a name. HFS+ ignores characters without width; NTFS ignores dots and blanks at the end and what follows a colon.
fn fold_name(name: &str) -> String {
    let folded: String = name
        .chars()
        .filter(|c| !is_ignored(*c))
        .flat_map(char::to_lowercase)
        .map(plain_letter)
        .collect();
    let folded = folded.split(':').next().unwrap_or_default();
    match folded.trim_end_matches(['.', ' ']) {
        "" => folded.to_owned(),
        kept => kept.to_owned(),
    }
}

/// Returns whether a text has characters that are not seen or that turn the direction of what is seen. One at the very beginning
/// says how a file is encoded.
pub fn has_hidden_character(text: &str) -> bool {
    let is_tag = |c: char| matches!(c, '\u{e0000}'..='\u{e007f}');
    text.trim_start_matches('\u{feff}').chars().any(|c| is_ignored(c) || is_tag(c))
}

fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Returns the ASCII character that a lower-case letter looks like.
pub fn plain_letter(c: char) -> char {
    const CONFUSABLE: &str =
        "аaαaсcϲcԁdеeεeɡgһhіiιiıiјjкkκkӏlℓlмmոnоoοoрpρpԛqгrѕsſsтtτtυuνvѵvԝwхxχxуyγy․.‐-‑-–-−-";
    if c.is_ascii() {
        return c;
    }
    let wide = u32::from(c).checked_sub(0xff01).filter(|offset| *offset < 94);
    if let Some(plain) = wide.and_then(|offset| char::from_u32(offset + 0x21)) {
        return plain.to_ascii_lowercase();
    }
    let mut letters = CONFUSABLE.chars();
    while let (Some(alike), Some(plain)) = (letters.next(), letters.next()) {
        if alike == c {
            return plain;
        }
    }
    c
}

/// A row of the table. A leading `/` is the root of the tree, otherwise the names may stand at any depth; `*` at the
/// beginning or the end of a name is any text. A folder includes everything below it.
struct SensitivePattern<'a> {
    is_rooted: bool,
    names: Vec<&'a str>,
}

impl<'a> SensitivePattern<'a> {
    fn parse(text: &'a str) -> Self {
        let names = text.split('/').filter(|name| !name.is_empty()).collect();
        Self { is_rooted: text.starts_with('/'), names }
    }

    fn matches(&self, path: &[String]) -> bool {
        self.starts(path).any(|rest| rest.len() >= self.names.len() && self.agrees(rest))
    }

    fn is_below(&self, path: &[String]) -> bool {
        self.starts(path)
            .any(|rest| !rest.is_empty() && rest.len() < self.names.len() && self.agrees(rest))
    }

    /// The path from each name at which the pattern may begin.
    fn starts<'p>(&self, path: &'p [String]) -> impl Iterator<Item = &'p [String]> {
        let most = if self.is_rooted { 1 } else { path.len() };
        (0..path.len().min(most)).map(move |at| &path[at..])
    }

    fn agrees(&self, path: &[String]) -> bool {
        self.names.iter().zip(path).all(|(pattern, name)| {
            match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
                (Some(end), _) => name.ends_with(end),
                (None, Some(start)) => name.starts_with(start),
                (None, None) => name == pattern,
            }
        })
    }
}

const TABLE: &[(&str, SensitiveKind)] = {
    use SensitiveKind::{AgentFile, Ci, EditorFile, GitFile, GitHook, InstallScript};
    &[
        ("/.github/workflows", Ci),
        ("/.github/actions", Ci),
        ("/.github/dependabot.yml", Ci),
        ("/.github/dependabot.yaml", Ci),
        ("/.github/codeowners", Ci),
        ("/.gitlab/codeowners", Ci),
        ("/codeowners", Ci),
        ("/.gitlab-ci*", Ci),
        ("/.gitlab/ci", Ci),
        ("/.gitea", Ci),
        ("/.forgejo", Ci),
        ("/.circleci", Ci),
        ("jenkinsfile*", Ci),
        ("*.jenkinsfile", Ci),
        ("/azure-pipelines*", Ci),
        ("/.azure-pipelines*", Ci),
        ("/.travis.y*", Ci),
        ("/bitbucket-pipelines.y*", Ci),
        ("/.woodpecker*", Ci),
        ("/.drone*", Ci),
        ("/.buildkite", Ci),
        ("/buildkite.y*", Ci),
        ("/appveyor.y*", Ci),
        ("/.appveyor*", Ci),
        ("/.cirrus*", Ci),
        ("/.semaphore", Ci),
        ("/.teamcity", Ci),
        ("/.tekton", Ci),
        ("/.build.y*", Ci),
        ("/.builds", Ci),
        ("/.codefresh", Ci),
        ("/codefresh.y*", Ci),
        ("/cloudbuild.y*", Ci),
        ("/buildspec.y*", Ci),
        ("/wercker.y*", Ci),
        ("/netlify.toml", Ci),
        (".githooks", GitHook),
        (".git-hooks", GitHook),
        (".hooks", GitHook),
        (".husky", GitHook),
        (".huskyrc*", GitHook),
        ("lefthook.*", GitHook),
        (".lefthook*", GitHook),
        (".pre-commit-config.y*", GitHook),
        (".pre-commit-hooks.y*", GitHook),
        (".overcommit.y*", GitHook),
        ("/fork.md", AgentFile),
        (".agents", AgentFile),
        ("agents.md", AgentFile),
        ("agents.override.md", AgentFile),
        ("agent.md", AgentFile),
        (".claude", AgentFile),
        ("claude.md", AgentFile),
        ("claude.local.md", AgentFile),
        ("gemini.md", AgentFile),
        (".gemini", AgentFile),
        (".cursor", AgentFile),
        (".cursorrules", AgentFile),
        (".codex", AgentFile),
        (".opencode", AgentFile),
        ("opencode.json*", AgentFile),
        (".pi", AgentFile),
        (".mcp.json", AgentFile),
        (".windsurf", AgentFile),
        (".windsurfrules", AgentFile),
        (".clinerules*", AgentFile),
        (".roo", AgentFile),
        (".roorules*", AgentFile),
        (".aider*", AgentFile),
        (".continue", AgentFile),
        (".kiro", AgentFile),
        (".junie", AgentFile),
        (".goosehints", AgentFile),
        ("qwen.md", AgentFile),
        (".qwen", AgentFile),
        ("crush.md", AgentFile),
        ("warp.md", AgentFile),
        (".kilocode*", AgentFile),
        (".augment*", AgentFile),
        (".amazonq", AgentFile),
        (".amp", AgentFile),
        (".copilot", AgentFile),
        (".crush*", AgentFile),
        ("crush.json", AgentFile),
        (".factory", AgentFile),
        (".openhands*", AgentFile),
        (".trae", AgentFile),
        (".rovodev", AgentFile),
        ("mcp.json", AgentFile),
        ("/.rules", AgentFile),
        ("/.github/copilot-instructions.md", AgentFile),
        ("/.github/instructions", AgentFile),
        ("/.github/prompts", AgentFile),
        ("/.github/chatmodes", AgentFile),
        ("/.github/agents", AgentFile),
        ("/.github/hooks", AgentFile),
        ("/.github/skills", AgentFile),
        (".vscode", EditorFile),
        ("*.code-workspace", EditorFile),
        (".idea", EditorFile),
        (".zed", EditorFile),
        (".fleet", EditorFile),
        (".devcontainer", EditorFile),
        (".devcontainer.json", EditorFile),
        ("/.worktreeinclude", EditorFile),
        (".envrc", EditorFile),
        (".exrc", EditorFile),
        (".nvimrc", EditorFile),
        (".nvim.lua", EditorFile),
        (".dir-locals*", EditorFile),
        (".gitpod*", EditorFile),
        (".idx", EditorFile),
        (".replit", EditorFile),
        (".helix", EditorFile),
        (".vimrc", EditorFile),
        (".gdbinit", EditorFile),
        (".lldbinit", EditorFile),
        (".vs", EditorFile),
        // Language servers, linters and build tools that an editor starts take their programs from these.
        (".cargo/config*", EditorFile),
        ("rust-toolchain*", EditorFile),
        ("gradle/wrapper", EditorFile),
        (".mvn", EditorFile),
        (".venv", EditorFile),
        (".eslintrc*", EditorFile),
        ("eslint.config.*", EditorFile),
        (".prettierrc*", EditorFile),
        ("prettier.config.*", EditorFile),
        ("mise.toml", EditorFile),
        (".mise*", EditorFile),
        ("package.json", InstallScript),
        (".npmrc", InstallScript),
        (".yarnrc*", InstallScript),
        (".yarn/releases", InstallScript),
        (".yarn/plugins", InstallScript),
        (".pnpmfile.*", InstallScript),
        (".gitattributes", GitFile),
        (".lfsconfig", GitFile),
        (".mailmap", GitFile),
        (".pnp.*", InstallScript),
        ("node_modules", InstallScript),
        ("bunfig.toml", InstallScript),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(paths: &[&str], expected: Option<SensitiveKind>) {
        for path in paths {
            assert_eq!(sensitive_path(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn what_runs_on_a_forge_is_known_by_its_path() {
        let ci = [
            ".github/workflows/x.yml",
            ".github/actions/a/action.yml",
            ".gitlab-ci.yml",
            ".gitea/workflows/a.yaml",
            ".forgejo/workflows/a.yaml",
            ".circleci/config.yml",
            "Jenkinsfile",
            "build/Jenkinsfile.release",
            "azure-pipelines.yml",
            ".travis.yml",
            "bitbucket-pipelines.yml",
            ".woodpecker.yml",
            ".woodpecker/a.yml",
            ".drone.yml",
            ".buildkite/pipeline.yml",
        ];
        check(&ci, Some(SensitiveKind::Ci));
    }

    #[test]
    fn hooks_and_what_agents_editors_and_package_managers_obey_are_known() {
        check(&[".githooks/pre-push", ".husky/pre-commit"], Some(SensitiveKind::GitHook));
        check(&["lefthook.yml", ".pre-commit-config.yaml"], Some(SensitiveKind::GitHook));
        let agents = [
            "CLAUDE.md",
            "web/AGENTS.md",
            "GEMINI.md",
            ".claude/settings.json",
            ".cursor/rules/a.mdc",
            ".cursorrules",
            ".mcp.json",
            ".codex/config.toml",
            ".opencode/agent/a.md",
            "opencode.json",
            ".github/copilot-instructions.md",
            "FORK.md",
            ".agents/FORK.md",
        ];
        check(&agents, Some(SensitiveKind::AgentFile));
        let editors = [
            ".vscode/tasks.json",
            "a/.vscode/settings.json",
            ".devcontainer/a.json",
            ".envrc",
            ".helix/languages.toml",
            "tool/.cargo/config.toml",
            "rust-toolchain.toml",
            "eslint.config.mjs",
        ];
        check(&editors, Some(SensitiveKind::EditorFile));
        let packages = ["package.json", "web/package.json", ".npmrc", "node_modules/.bin/mocha"];
        check(&packages, Some(SensitiveKind::InstallScript));
        let git = [".gitattributes", "src/.GitAttributes", ".lfsconfig", ".mailmap"];
        check(&git, Some(SensitiveKind::GitFile));
    }

    #[test]
    fn ordinary_files_are_not() {
        let ordinary = [
            "src/main.rs",
            "vendor/lib/.github/workflows/ci.yml",
            ".github/ISSUE_TEMPLATE/bug.md",
            "docs/agents/index.md",
            ".cargo/audit.toml",
            "src/hooks/use_state.ts",
            "package-lock.json",
            "my-claude.md",
            "docs/fork.md",
            ".gitignore",
            "",
        ];
        check(&ordinary, None);
    }

    #[test]
    fn another_spelling_is_the_same_path() {
        let spellings = [
            ".GitHub/Workflows/x.yml",
            ".git\u{200c}hub/workflows/x.yml",
            ".github\u{feff}/workflows/x.yml",
            ".gіthub/wоrkflows/x.yml",
            ".ｇithub/workflows/x.yml",
            ".github./workflows /x.yml",
            ".github\\workflows\\x.yml",
            ".github::$INDEX_ALLOCATION/workflows/x.yml",
        ];
        check(&spellings, Some(SensitiveKind::Ci));
        check(&["Claude.MD", "АGENTS.md", ".\u{212a}iro/a"], Some(SensitiveKind::AgentFile));
    }

    #[test]
    fn a_link_above_a_sensitive_path_provides_it() {
        assert_eq!(sensitive_below(b".github"), Some(SensitiveKind::Ci));
        assert_eq!(sensitive_below(b"web/.yarn"), Some(SensitiveKind::InstallScript));
        assert_eq!(sensitive_below(b"web/.github"), None);
        assert_eq!(sensitive_below(b"src"), None);
        assert_eq!(sensitive_below(b""), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_path(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _kind = (sensitive_path(&bytes), sensitive_below(&bytes));
        }

        #[test]
        fn the_case_of_letters_never_matters(at in 0..TABLE.len(), upper in any::<u64>()) {
            let path = TABLE[at].0.trim_start_matches('/').replace('*', "x");
            let mixed: String = path
                .chars()
                .enumerate()
                .map(|(at, c)| if upper >> (at % 64) & 1 == 1 { c.to_ascii_uppercase() } else { c })
                .collect();
            prop_assert!(sensitive_path(mixed.as_bytes()).is_some(), "{}", mixed);
        }
    }
}
