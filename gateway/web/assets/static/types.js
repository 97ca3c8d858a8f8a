// Written from the node's table of field types by a test, TestListsOfFieldTypes: not by hand.

/** What each type says, by which kind of control it asks, also with options (ticks), whether it takes options, and whether it has a placeholder (hint). */
export const types = {
  "text": {"says":"a line of text","asks":"line","takes":"no","hint":true},
  "textarea": {"says":"lines of text","asks":"lines","takes":"no","hint":true},
  "number": {"says":"a number","asks":"number","takes":"no","hint":true},
  "checkbox": {"says":"to be ticked, or options to tick","asks":"yesno","ticks":"choices","takes":"may"},
  "select": {"says":"one option of a menu","asks":"choice","takes":"needs","hint":true},
  "multiselect": {"says":"several options","asks":"choices","takes":"needs"},
  "radio": {"says":"one option, below each other","asks":"choice","takes":"needs"},
  "buttons": {"says":"one option, by a button","asks":"choice","takes":"needs"},
  "confirm": {"says":"yes or no, or words of your own","asks":"choice","takes":"may","given":[{"value":"Yes"},{"value":"No"}]},
  "date": {"says":"a day","asks":"date","takes":"no","format":"date"},
  "url": {"says":"a web address","asks":"line","takes":"no","format":"uri","hint":true},
  "secret": {"says":"kept sealed","asks":"secret","takes":"no","hint":true},
  "capability": {"says":"something they hold","asks":"reference","takes":"no","hint":true},
  "file": {"says":"a file","asks":"file","takes":"no"},
  "": {"says":"whatever the pattern allows","asks":"any","takes":"no","hint":true},
};
