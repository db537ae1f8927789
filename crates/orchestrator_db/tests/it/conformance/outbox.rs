//! Dispatches, schedules and notices: stored once, and with all that belongs together in one commit.

use orchestrator_db::{
    DeliveryInsert, Dispatch, DispatchRequest, DispatchState, Notice, NoticeState, ScheduleMark,
};

use super::Engine;

fn dispatch(id: &str) -> Dispatch {
    let request = DispatchRequest {
        origin: "a command".to_owned(),
        schedule: Some("nightly".to_owned()),
        owner: "acme".to_owned(),
        repo: "widget".to_owned(),
        agent: "worker".to_owned(),
        bottles: vec!["rust".to_owned()],
        assignee: None,
        title: "Sort".to_owned(),
        prompt: "Sort the lists.".to_owned(),
    };
    Dispatch::new(id.to_owned(), request, "2026-11-15T08:00:00Z".parse().unwrap())
}

pub(crate) fn a_dispatch_is_stored_once_and_read_as_it_was(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    assert_eq!(store.add_dispatch(&dispatch("d1")).unwrap(), DeliveryInsert::New);
    assert_eq!(store.add_dispatch(&dispatch("d1")).unwrap(), DeliveryInsert::Duplicate);
    assert_eq!(store.open_dispatches(9).unwrap(), [dispatch("d1")]);
    let opened = Dispatch {
        state: DispatchState::Opened,
        issue_number: Some(7),
        attempts: 2,
        not_before: Some("2026-11-15T09:00:00Z".parse().unwrap()),
        problem: "down".to_owned(),
        ..dispatch("d1")
    };
    store.save_dispatch(&opened).unwrap();
    assert_eq!(store.dispatch("d1").unwrap(), Some(opened.clone()));
    assert!(store.open_dispatches(9).unwrap().is_empty());
    assert_eq!(store.dispatch_of_issue(&opened.issue().unwrap()).unwrap(), Some(opened));
}

pub(crate) fn a_schedule_moves_with_what_it_asks_for(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let mark = ScheduleMark {
        name: "nightly".to_owned(),
        definition: "0 3 * * *".to_owned(),
        last_due: "2026-11-15T03:00:00Z".parse().unwrap(),
    };
    store.mark_schedule(&mark, Some(&dispatch("nightly 1"))).unwrap();
    store.mark_schedule(&mark, Some(&dispatch("nightly 1"))).unwrap();
    assert_eq!(store.schedule_marks().unwrap(), [mark]);
    assert_eq!(store.open_dispatches(9).unwrap().len(), 1, "a time asks once");
    assert_eq!(store.last_dispatch_of("nightly").unwrap().unwrap().id, "nightly 1");
    assert_eq!(store.last_dispatch_of("weekly").unwrap(), None);
}

fn notice(id: &str, subject: &str) -> Notice {
    Notice {
        id: id.to_owned(),
        subject: subject.to_owned(),
        kind: "question".to_owned(),
        body: "{}".to_owned(),
        created_at: "2026-11-15T08:00:00Z".parse().unwrap(),
    }
}

pub(crate) fn a_subject_is_told_once_through_every_channel(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    assert_eq!(store.notice_cursor().unwrap(), None);
    let list = [notice("n1", "event 4"), notice("n2", "event 4"), notice("n3", "event 5")];
    store.add_notices(&list, &["mail", "webhook"], Some(5)).unwrap();
    assert_eq!(store.notice_cursor().unwrap(), Some(5));
    let open = store.open_notices(9).unwrap();
    let shown: Vec<(&str, &str)> =
        open.iter().map(|it| (it.notice.id.as_str(), it.channel.as_str())).collect();
    assert_eq!(shown, [("n1", "mail"), ("n1", "webhook"), ("n3", "mail"), ("n3", "webhook")]);
    let mut sent = open[0].clone();
    (sent.state, sent.attempts) = (NoticeState::Sent, 1);
    store.save_notice(&sent).unwrap();
    assert_eq!(store.open_notices(9).unwrap().len(), 3);
    assert_eq!(store.last_notices(1).unwrap()[0].notice.id, "n3");
    store.forget_notices("2026-11-16T08:00:00Z".parse().unwrap()).unwrap();
    assert_eq!(store.last_notices(9).unwrap().len(), 4, "what is under way stays");
}

pub(crate) fn what_was_found_in_an_organisation_is_replaced_as_a_whole(engine: &dyn Engine) {
    let store = engine.open();
    let store = &*store;
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    store.save_found_repositories("acme", &names(&["acme/a", "acme/b"])).unwrap();
    store.save_found_repositories("other", &names(&["other/a"])).unwrap();
    store.save_found_repositories("acme", &names(&["acme/b", "acme/c"])).unwrap();
    assert_eq!(store.found_repositories("acme").unwrap(), ["acme/b", "acme/c"]);
    assert_eq!(store.found_repositories("other").unwrap(), ["other/a"]);
}
