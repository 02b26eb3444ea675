// The search and the copy buttons. Menus are popovers, which need no script.
const input = document.querySelector('input[type=search]'), found = document.getElementById('found');
const home = document.querySelector('header a').href;
let index;

// score is how well a section fits words: 0 unless it contains all of them.
function score(section, words) {
  const title = section.title.toLowerCase(), page = section.page.toLowerCase(), text = section.text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const one = (title === word) * 40 + title.includes(word) * 20 + page.includes(word) * 5 + text.includes(word);
    if (!one) return 0;
    sum += one;
  }
  return sum - title.length / 1000;
}

async function search() {
  index ??= fetch(new URL('index.json', home)).then(response => response.json());
  const sections = await index, words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const best = words.length ? sections.map(section => [score(section, words), section]).filter(([points]) => points > 0)
    .sort(([a], [b]) => b - a).slice(0, 20) : [];
  found.replaceChildren(...best.map(([, section]) => {
    const link = document.createElement('a'), title = document.createElement('b'), at = section.text.toLowerCase().indexOf(words[0]);
    link.href = new URL(section.url, home);
    title.textContent = section.title === section.page ? section.title : `${section.page}: ${section.title}`;
    link.append(title, section.text.slice(Math.max(0, at - 60), at + 100).replace(at > 60 ? /^\S*/ : '', ''));
    return link;
  }));
  if (words.length && !best.length) found.textContent = 'Nothing found.';
  found.togglePopover(words.length > 0);
}
input.addEventListener('input', search);
document.addEventListener('keydown', event => {
  if (event.key === 'Escape') found.hidePopover();
  if (event.key === 'Enter' && event.target === input) found.querySelector('a')?.click();
  if (event.key === '/' && document.activeElement !== input) { event.preventDefault(); input.focus(); }
});
document.addEventListener('click', event => found.contains(event.target) || event.target === input || found.hidePopover());

for (const pre of document.querySelectorAll('pre:not(:has(.language-console))')) {
  const button = document.createElement('button');
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(pre.querySelector('code').textContent);
    button.textContent = 'Copied';
  });
  pre.parentElement.append(button);
}
