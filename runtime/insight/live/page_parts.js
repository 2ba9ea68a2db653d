// Making and filling elements. Text is never read as HTML.

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Touches the page only where something has changed.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
