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

// The browser gives notice when more bottles need a person than before, if somebody has asked for that here.
const WANTED = 'bot-bottle notices';
const canNotify = () => 'Notification' in window && document.querySelector('main[data-calls]') !== null;
const offerNotices = () => {
  const offer = document.querySelector('.notify');
  if (!offer || !canNotify() || Notification.permission === 'denied') return;
  const isOn = Notification.permission === 'granted' && localStorage.getItem(WANTED) === 'yes';
  offer.hidden = false;
  offer.querySelector('button').textContent = isOn ? 'Notices are on: turn them off' : 'Notify me when a bottle needs me';
};
document.addEventListener('click', async (event) => {
  if (!event.target.matches('[data-notify]')) return;
  if (localStorage.getItem(WANTED) === 'yes' && Notification.permission === 'granted') {
    localStorage.removeItem(WANTED);
  } else if (await Notification.requestPermission() === 'granted') {
    localStorage.setItem(WANTED, 'yes');
  }
  offerNotices();
});
let calls = Number(document.querySelector('main')?.dataset.calls ?? 0);
const giveNotice = (now) => {
  if (now === undefined) return;
  const before = calls;
  calls = Number(now);
  if (calls <= before || !canNotify()) return;
  if (Notification.permission !== 'granted' || localStorage.getItem(WANTED) !== 'yes') return;
  const words = calls === 1 ? 'One bottle needs you' : `${calls} bottles need you`;
  const notice = new Notification(words, { icon: document.querySelector('link[rel="icon"]')?.href, tag: 'bot-bottle' });
  notice.addEventListener('click', () => window.focus());
};
offerNotices();

// The time that a run takes goes on.
const showElapsed = () => document.querySelectorAll('time[data-since]').forEach((it) => {
  const secs = Math.max(0, Math.floor((Date.now() - Date.parse(it.dateTime)) / 1000));
  if (secs < 60) it.textContent = `${secs} s`;
  else if (secs < 3600) it.textContent = `${Math.floor(secs / 60)} min`;
  else it.textContent = `${Math.floor(secs / 3600)} h ${String(Math.floor(secs % 3600 / 60)).padStart(2, '0')} min`;
});
if (document.querySelector('main[data-live]')) setInterval(showElapsed, 1000);

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
    // The title and the icon have the number of bottles that need a person, also while somebody writes.
    document.title = page.title;
    const icon = page.querySelector('link[rel="icon"]')?.getAttribute('href');
    if (icon) document.querySelector('link[rel="icon"]')?.setAttribute('href', icon);
    if (fresh) giveNotice(fresh.dataset.calls);
    if (!fresh || isBusy()) return;
    main.replaceChildren(...fresh.childNodes);
    main.querySelectorAll('details').forEach((it, index) => { it.open = open[index] ?? it.open; });
    offerNotices();
  };
  follow(main.dataset.live, {
    message: () => {
      if (!waiting) setTimeout(renew, 300);
      waiting = true;
    },
  });
}

// A log grows at its end, and stays in view for whoever looks at its end. Steps come as markup that the server has made.
const showErrors = () => {
  const list = document.querySelector('[data-errors]');
  if (!list) return;
  const failed = [...document.querySelectorAll('.steps li.failed[id]')];
  const links = failed.slice(0, 20).flatMap((step, index) => {
    const link = document.createElement('a');
    link.href = `#${step.id}`;
    link.textContent = `Error ${index + 1}`;
    return [link, ' '];
  });
  if (failed.length > 20) links.push(`and ${failed.length - 20} more`);
  list.replaceChildren(...links);
  list.hidden = failed.length === 0;
};
const grow = (box, address, append) => {
  const state = document.querySelector('[data-log-state]');
  const now = document.querySelector('[data-now]');
  if (!location.hash) box.scrollTop = box.scrollHeight;
  follow(address, {
    message: (event) => {
      const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
      append(JSON.parse(event.data));
      if (atEnd) box.scrollTop = box.scrollHeight;
    },
    now: (event) => {
      if (!now) return;
      now.textContent = JSON.parse(event.data);
      now.parentElement.hidden = !now.textContent;
    },
    end: (event, source) => {
      source.close();
      if (now) now.parentElement.hidden = true;
      if (state) {
        state.textContent = 'ended';
        state.className = 'badge destroyed';
      }
    },
  });
};
const log = document.querySelector('pre[data-log]');
const steps = document.querySelector('.steps[data-steps]');
if (log) {
  grow(log, log.dataset.log, (text) => log.append(text));
} else if (steps) {
  grow(steps.parentElement, steps.dataset.steps, (markup) => {
    const part = document.createElement('template');
    part.innerHTML = markup;
    steps.append(part.content);
    showErrors();
  });
} else {
  const ends = location.hash ? 'pre.log' : 'pre.log, .scroll-box';
  document.querySelectorAll(ends).forEach((it) => { it.scrollTop = it.scrollHeight; });
}
