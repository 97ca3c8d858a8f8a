package capabilities_test

import (
	"fmt"

	"parley/capabilities"
)

const id = "01JZ9GQ1ZMTXJ8PDD0R5Y4K2HV@NAAACAQDAQCQMBYIBEFAWDANBYHRAEISCMKBKFQXDAMRUGY4DUPB6CRG"

func ExampleLocator() {
	target, err := capabilities.ParseID(id)
	if err != nil {
		panic(err)
	}
	l := capabilities.Locator{ID: target, Kind: capabilities.KindPromise, Hints: []string{"nats://host:4222"}}
	fmt.Println(l)
	back, err := capabilities.ParseLocator(l.String())
	fmt.Println(back.ID == target, back.Kind, back.Hints, err)
	// Output:
	// parley://NAAACAQDAQCQMBYIBEFAWDANBYHRAEISCMKBKFQXDAMRUGY4DUPB6CRG/01JZ9GQ1ZMTXJ8PDD0R5Y4K2HV?at=nats%3A%2F%2Fhost%3A4222&type=promise
	// true promise [nats://host:4222] <nil>
}

func ExampleFacet_Narrow() {
	given := capabilities.Facet{Mode: capabilities.AskOnly, Uses: 3}
	passedOn := given.Narrow(capabilities.Facet{Uses: 100}) // attenuation never adds rights
	fmt.Println(passedOn.Mode, passedOn.Uses)
	fmt.Println(passedOn.Permits(capabilities.UseAsk, 1, 2))
	fmt.Println(passedOn.Permits(capabilities.UseSend, 1, 0))
	// Output:
	// ask 3
	// <nil>
	// NOT_PERMITTED: the reference is for asking only
}

func ExampleParseJSON() {
	v, err := capabilities.ParseJSON([]byte(`{"port": 8080, "load": 1.0, "who": {"$cap": "` + id + `", "kind": "agent"}}`))
	if err != nil {
		panic(err)
	}
	r, _ := v.AsRecord()
	fmt.Println(r["port"].TypeName(), r["load"].TypeName(), r["who"].TypeName())
	fmt.Println(capabilities.Record(map[string]capabilities.Value{"load": r["load"], "port": r["port"]}).Text())
	_, err = capabilities.ParseJSON([]byte(`{"port": 1, "port": 2}`))
	fmt.Println(err)
	// Output:
	// integer number reference
	// {"load":1.0,"port":8080}
	// INVALID_ARGUMENT: key "port" stands twice
}

func ExampleLedger_Cut() {
	grant := func(n byte, parent capabilities.ID) capabilities.Grant {
		g := capabilities.Grant{Parent: parent}
		g.ID.ULID[15] = n
		return g
	}
	var l capabilities.Ledger
	toBob := grant(1, capabilities.ID{})
	toCarol := grant(2, toBob.ID)
	l.Add(toBob)
	l.Add(toCarol)
	l.Add(grant(3, capabilities.ID{}))
	fmt.Println(len(l.Cut(toBob.ID)), "of", l.Len(), "grants end")
	// Output: 2 of 3 grants end
}
