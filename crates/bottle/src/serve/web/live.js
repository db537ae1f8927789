// Brings news to a page that is open. Everything is readable without it.
'use strict';

const follow = (address, handlers) => {
  const source = new EventSource(address);
  for (const [name, handle] of Object.entries(handlers)) source.addEventListener(name, (event) => handle(event, source));
};

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
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('main');
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
