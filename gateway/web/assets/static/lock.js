// Locks that the tabs of a browser share: what a tab holds, the others know to be its for as long as it lives.

/**
 * Holds a lock from when it is free, and gives the function that ends that.
 * @param {string} name
 * @param {LockMode} mode
 * @param {() => void} [got] called when it is held
 */
export function hold(name, mode, got) {
  const end = new AbortController();
  const { signal } = end;
  navigator.locks.request(name, { mode, signal }, () => {
    if (!signal.aborted) got?.();
    return signal.aborted || new Promise((resolve) => { signal.addEventListener('abort', resolve); });
  }).catch((why) => { if (why.name !== 'AbortError') throw why; });
  return () => end.abort();
}
