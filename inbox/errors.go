package inbox

import "errors"

// ErrBusy is returned while another delivery of the message is being handled. The
// error is a *idem.InProgressError too, with a hint when to try again.
var ErrBusy = errors.New("message is being handled")
