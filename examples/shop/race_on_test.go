//go:build race

package main

// kills is how often TestKilled kills the shop.
const kills = 25
