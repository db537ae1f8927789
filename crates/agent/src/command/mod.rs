//! A custom program: a template of arguments, with the prompt in one of them or in a file.
//!
//! The format of its output is unknown, so its text is the answer and only its status is judged.

mod event;
mod template;

use crate::claude;
use crate::provider::{AgentCommand, Provider, in_box, texts};
use crate::request::{AgentError, AgentRequest, WireApi};

pub(crate) use event::CommandEvents;

/// The prompt, in the read-only folder of the box.
const PROMPT_FILE: &str = "prompt.txt";

/// Builds the command. Tool servers, if any, are in `mcp.json` beside the prompt, in the format of Claude
/// Code. The model route is in the variables that most programs read.
pub(crate) fn command(request: &AgentRequest) -> Result<AgentCommand, AgentError> {
    let route = &request.model_route;
    let env = match route.wire {
        WireApi::Messages => {
            texts([("ANTHROPIC_BASE_URL", route.root()), ("ANTHROPIC_API_KEY", &route.dummy_key)])
        }
        WireApi::Chat | WireApi::Responses => {
            texts([("OPENAI_BASE_URL", &route.v1()), ("OPENAI_API_KEY", &route.dummy_key)])
        }
    };
    let mut files = claude::mcp_file(request);
    files.insert(PROMPT_FILE.to_owned(), request.prompt.clone());
    Ok(AgentCommand { argv: argv(request)?, env, files, ..AgentCommand::default() })
}

fn argv(request: &AgentRequest) -> Result<Vec<String>, AgentError> {
    let template = request.template.as_deref().unwrap_or_default();
    if template.first().is_none_or(String::is_empty) {
        return Err(AgentError::NoTemplate);
    }
    let prompt_file = in_box(PROMPT_FILE);
    let value = |name: &str| match name {
        "prompt" => Ok(request.prompt.as_str()),
        "prompt_file" => Ok(prompt_file.as_str()),
        "workspace" => Ok(request.workspace.as_str()),
        "model" => request.model_for(Provider::Command),
        _ => Err(AgentError::UnknownPlaceholder { name: name.to_owned() }),
    };
    template.iter().map(|word| template::fill(word, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::SessionRequest;
    use crate::request::samples::{sample, sample_servers};

    fn request(words: &[&str]) -> AgentRequest {
        let template = Some(words.iter().map(|&word| word.to_owned()).collect());
        AgentRequest { template, ..sample(WireApi::Chat) }
    }

    #[test]
    fn placeholders_are_filled_in_one_pass() {
        let mut request = request(&["aider", "--model={model}", "-C", "{workspace}", "{prompt}"]);
        request.prompt = "keep {model} as it is".to_owned();
        let argv = Provider::Command.command(&request).unwrap().argv;
        assert_eq!(
            argv,
            ["aider", "--model=scripted", "-C", "/workspace", "keep {model} as it is"]
        );
    }

    #[test]
    fn the_prompt_is_also_a_file() {
        let command = Provider::Command.command(&request(&["x", "{prompt_file}"])).unwrap();
        assert_eq!(command.argv[1], "/harness-state/run/prompt.txt");
        assert_eq!(command.files["prompt.txt"], "Merge upstream");
        assert_eq!(command.env["OPENAI_BASE_URL"], "http://127.0.0.1:3128/-/model/v1");
    }

    #[test]
    fn the_model_route_has_the_names_of_its_kind() {
        let mut request = request(&["x"]);
        request.model_route.wire = WireApi::Messages;
        request.mcp = sample_servers();
        let command = Provider::Command.command(&request).unwrap();
        assert_eq!(command.env["ANTHROPIC_BASE_URL"], "http://127.0.0.1:3128/-/model");
        assert!(command.files.contains_key("mcp.json"));
    }

    #[test]
    fn what_cannot_be_filled_in_is_an_error() {
        let error = |request: &AgentRequest| Provider::Command.command(request).unwrap_err();
        assert_eq!(
            error(&request(&["x", "{prmpt}"])).to_string(),
            "there is no placeholder {prmpt}; choose one of: {prompt}, {prompt_file}, {workspace}, {model}"
        );
        assert_eq!(error(&request(&[])), AgentError::NoTemplate);
        assert_eq!(error(&sample(WireApi::Chat)), AgentError::NoTemplate);
        let mut no_model = request(&["x", "{model}"]);
        no_model.model = None;
        assert_eq!(error(&no_model), AgentError::NoModel { provider: Provider::Command });
        let mut resumed = request(&["x"]);
        resumed.session = SessionRequest::Resume("1".to_owned());
        assert_eq!(error(&resumed).to_string(), "command cannot be given a session to resume");
    }
}
