// Brings news to a page that is open. Everything is readable without it.
'use strict';

// Says above the page that it is not current, and leads to the login where that is the reason.
const tell = (words, href) => {
  let notice = document.querySelector('#connection');
  if (!words) {
    notice?.remove();
    return;
  }
  if (!notice) {
    notice = document.createElement('p');
    notice.id = 'connection';
    notice.className = 'notice bad';
    notice.setAttribute('role', 'status');
    document.querySelector('main').before(notice);
  }
  notice.textContent = words;
  if (href) {
    const link = document.createElement('a');
    link.href = href;
    link.textContent = 'Log in';
    notice.append(' ', link);
  }
};

// Follows a stream. A browser continues one that broke off; after an answer that is no stream it gives up, so this goes on.
const follow = (address, handlers) => {
  let last = null;
  const connect = () => {
    const from = new URL(address, location.href);
    if (last !== null) from.searchParams.set('after', last);
    const source = new EventSource(from);
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) last = event.lastEventId;
        handle(event, source);
      });
    }
    source.addEventListener('open', () => tell(null));
    source.addEventListener('error', async () => {
      tell('Not connected to the server. Trying again.');
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(connect, 3000);
      const answer = await fetch(location.href, { redirect: 'manual' }).catch(() => null);
      if (answer?.type === 'opaqueredirect') {
        tell('You are logged out.', `/login?next=${encodeURIComponent(location.pathname)}`);
      }
    });
  };
  connect();
};

// Words that somebody has typed are kept until the server has accepted them, also over a restart and a login.
const draftOf = (area) => `draft ${new URL(area.form.action).pathname}`;
const accepted = new URLSearchParams(location.search).get('requested');
if (accepted) sessionStorage.removeItem(`draft ${location.pathname}/${accepted}`);
const restoreDrafts = () => document.querySelectorAll('form textarea').forEach((area) => {
  if (!area.value) area.value = sessionStorage.getItem(draftOf(area)) ?? '';
});
document.addEventListener('input', (event) => {
  if (event.target.matches('form textarea')) sessionStorage.setItem(draftOf(event.target), event.target.value);
});
restoreDrafts();

// A page about work is fetched again when something happened, unless somebody is writing on it.
const main = document.querySelector('main[data-live]');
if (main) {
  let waiting = false;
  const isBusy = () => [...main.querySelectorAll('textarea')].some((it) => it.value || it === document.activeElement);
  const renew = async () => {
    waiting = false;
    if (isBusy()) return;
    const open = [...main.querySelectorAll('details')].map((it) => it.open);
    const answer = await fetch(location.href, { headers: { accept: 'text/html' } });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.querySelector('main');
    // The title has the number of bottles that need a person, also while somebody writes.
    document.title = page.title;
    if (!fresh || isBusy()) return;
    main.replaceChildren(...fresh.childNodes);
    main.querySelectorAll('details').forEach((it, index) => { it.open = open[index] ?? it.open; });
  };
  follow(main.dataset.live, {
    message: () => {
      if (!waiting) setTimeout(renew, 300);
      waiting = true;
    },
  });
}

// A log grows at its end, and stays in view for whoever looks at its end.
const log = document.querySelector('pre[data-log]');
if (log) {
  const state = document.querySelector('[data-log-state]');
  log.scrollTop = log.scrollHeight;
  follow(log.dataset.log, {
    message: (event) => {
      const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      log.append(JSON.parse(event.data));
      if (atEnd) log.scrollTop = log.scrollHeight;
    },
    end: (event, source) => {
      source.close();
      if (state) {
        state.textContent = 'ended';
        state.className = 'badge destroyed';
      }
    },
  });
} else {
  document.querySelectorAll('pre.log').forEach((it) => { it.scrollTop = it.scrollHeight; });
}
