//! Which of the tools on offer a turn calls.

use serde_json::{Value, json};

/// Description of a command, for shell tools that require one.
const DESCRIPTION: &str = "Run the scripted command";

/// A tool that a request offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    /// The namespace that the tool is in, where an API has them.
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// With an object.
    Function,
    /// With a text.
    Custom,
    /// With an argument vector, as the API's own shell.
    LocalShell,
    /// With a query, to be offered the tools that match it.
    Search,
    /// Not at all by an answer: the provider runs it.
    Hosted,
}

/// A call of a tool that was offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) offer: Offer,
    pub(super) input: Value,
}

impl Offer {
    pub(super) fn function(name: &str) -> Self {
        Self { namespace: None, name: name.to_owned(), kind: Kind::Function }
    }

    /// The name with its namespace, in the form in which other agents spell the tools of their servers.
    pub(super) fn full_name(&self) -> String {
        let Some(namespace) = &self.namespace else { return self.name.clone() };
        format!("{}__{}", namespace.trim_end_matches('_'), self.name)
    }
}

/// The call that runs a command, or why there is none.
pub(super) fn choose_shell(offers: &[Offer], command: &str) -> Result<Call, String> {
    let call = |offer: &Offer| {
        let input = shell_input(offer, command)?;
        Some(Call { offer: offer.clone(), input })
    };
    offers.iter().find_map(call).ok_or_else(|| complaint("a shell", offers))
}

/// The call of the tool of this name, or of the first whose name ends in it, or why there is none. An agent that keeps
/// tools back is asked for it first.
pub(super) fn choose_tool(offers: &[Offer], suffix: &str, input: &Value) -> Result<Call, String> {
    let mut callable =
        offers.iter().filter(|offer| matches!(offer.kind, Kind::Function | Kind::Custom));
    let exact = callable.clone().find(|offer| offer.name == suffix);
    if let Some(offer) =
        exact.or_else(|| callable.find(|offer| offer.full_name().ends_with(suffix)))
    {
        return Ok(Call { offer: offer.clone(), input: input.clone() });
    }
    let search = offers.iter().find(|offer| offer.kind == Kind::Search);
    let offer = search.ok_or_else(|| complaint(&format!("{suffix:?}"), offers))?;
    // The words as well as the name: a search by words may know either.
    let query = format!("{suffix} {}", suffix.replace('_', " "));
    Ok(Call { offer: offer.clone(), input: json!({ "query": query }) })
}

/// Arguments of the known shell tools; `None` for any other tool.
fn shell_input(offer: &Offer, command: &str) -> Option<Value> {
    let vector = json!(["bash", "-lc", command]);
    match (offer.kind, offer.name.as_str()) {
        (Kind::Function, "bash" | "Bash") => {
            Some(json!({ "command": command, "description": DESCRIPTION }))
        }
        (Kind::Function, "exec_command") => Some(json!({ "cmd": command })),
        (Kind::Function, "shell_command") => Some(json!({ "command": command })),
        (Kind::Function, "shell") | (Kind::LocalShell, _) => Some(json!({ "command": vector })),
        (Kind::Function | Kind::Custom | Kind::Search | Kind::Hosted, _) => None,
    }
}

fn complaint(wanted: &str, offers: &[Offer]) -> String {
    let names: Vec<_> = offers.iter().map(Offer::full_name).collect();
    format!("the script calls {wanted}, but the tools on offer are: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_shell(name: &str, input: &Value) {
        let offers = [Offer::function("read"), Offer::function(name)];
        let call = choose_shell(&offers, "git status").expect("a shell");
        assert_eq!((call.offer.name.as_str(), &call.input), (name, input));
    }

    #[test]
    fn every_agents_shell_gets_its_own_arguments() {
        let described = json!({"command": "git status", "description": DESCRIPTION});
        check_shell("bash", &described);
        check_shell("Bash", &described);
        check_shell("exec_command", &json!({"cmd": "git status"}));
        check_shell("shell_command", &json!({"command": "git status"}));
        check_shell("shell", &json!({"command": ["bash", "-lc", "git status"]}));
    }

    #[track_caller]
    fn check_tool(suffix: &str, found: &str) {
        let space = Some("mcp__probe".to_owned());
        let offers = [
            Offer::function("long_echo"),
            Offer { namespace: space, ..Offer::function("echo_upper") },
            Offer { kind: Kind::Hosted, ..Offer::function("web_search") },
            Offer::function("echo"),
        ];
        let name = match choose_tool(&offers, suffix, &Value::Null) {
            Ok(call) => call.offer.full_name(),
            Err(complaint) => complaint,
        };
        assert_eq!(name, found);
    }

    #[test]
    fn tools_are_found_by_name_and_else_by_suffix() {
        check_tool("echo", "echo");
        check_tool("upper", "mcp__probe__echo_upper");
        check_tool("probe__echo_upper", "mcp__probe__echo_upper");
        let offered = "long_echo, mcp__probe__echo_upper, web_search, echo";
        let missing = |name: &str| {
            format!("the script calls \"{name}\", but the tools on offer are: {offered}")
        };
        check_tool("web_search", &missing("web_search"));
        check_tool("write", &missing("write"));
    }

    #[test]
    fn a_tool_that_is_kept_back_is_searched_for() {
        let search = Offer { kind: Kind::Search, ..Offer::function("tool_search") };
        let offers = [search.clone(), Offer::function("echo")];
        let choose = |suffix| choose_tool(&offers, suffix, &Value::Null).expect("a call");
        assert_eq!(choose("echo").offer.name, "echo");
        let input = json!({ "query": "echo_upper echo upper" });
        assert_eq!(choose("echo_upper"), Call { offer: search, input });
    }
}
