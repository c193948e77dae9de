// Package spell finds the word that somebody may have meant.
package spell

// Nearest returns the word that is most like text, or "" if none is like it.
func Nearest(text string, words []string) string {
	best, least := "", 1+max(2, len(text)/3)
	for _, word := range words {
		if d := Distance(text, word); d < least {
			best, least = word, d
		}
	}
	return best
}

// Distance is the number of bytes to insert, delete or replace to get from one
// text to the other.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
