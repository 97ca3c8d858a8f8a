package web

import "net/http"

// SettingsPath is the address of the page of settings.
const SettingsPath = "/settings"

// showSettings shows the settings of the reader and of this browser.
func showSettings(p *page) error {
	if err := p.readsOnly(); err != nil {
		return err
	}
	return p.show(http.StatusOK, "settings.html", layout{Title: "Settings", Main: struct{ Owner bool }{p.ownsDevices()}})
}
